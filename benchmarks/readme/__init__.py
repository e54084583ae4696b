"""The results in README.md: one table, measured by one command."""
