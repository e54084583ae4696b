"""Slow NumPy twins of the native kernels: the oracle of the tests, and nothing else."""
