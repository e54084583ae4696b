"""Speed and quality, one table per question: see README.md."""
