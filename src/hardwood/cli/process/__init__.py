"""The command as a process: signals and standard streams."""
