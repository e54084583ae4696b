"""Views of models: as text (`text`), as a plot (`plot`), and as an interactive page (`page`)."""
