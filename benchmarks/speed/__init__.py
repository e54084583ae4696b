"""How fast, and how small: one script per question."""
