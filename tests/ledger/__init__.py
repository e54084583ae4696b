"""The ledger: proof that a change of the code changed nothing that it learns, writes or prints."""
