"""Models as files: one container, one header, arrays, JSON."""
