"""Speed and memory: one script per question."""
