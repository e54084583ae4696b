"""The ledger: checks that a change of the code does not change what it learns, writes or prints."""
