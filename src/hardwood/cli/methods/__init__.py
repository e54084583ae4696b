"""The option `--method`: the methods, their parameters as options, and the commands with it."""
