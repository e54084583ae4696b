"""Slow NumPy references of the native kernels, used only as the oracle of the tests."""
