"""Rules: one for each leaf, in words that can be read back."""
