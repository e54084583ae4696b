"""CSV files: columns read as what they are, and text that spreadsheets do not run."""
