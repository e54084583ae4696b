"""The command as a process: its start, signals and standard streams."""
