"""Numbers, conditions, tables and reports as text; imports nothing from the layers above."""
