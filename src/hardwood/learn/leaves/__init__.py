"""How leaves are fitted to the rows they hold: constant ones, and linear ones."""
