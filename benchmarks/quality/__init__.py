"""How accurate: one script per table."""
