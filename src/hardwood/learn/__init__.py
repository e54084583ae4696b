"""Matrix -> tree: one file per paper, and what they share."""
