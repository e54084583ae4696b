"""Numbers, conditions, tables and reports in words; knows nothing above it."""
