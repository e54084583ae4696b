"""SQL: one statement that predicts every row of a table."""
