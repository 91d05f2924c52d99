"""The native module of quantd's local(): quantd_core._native. The package quantd has all Python code that uses it."""

__version__ = "0.1.0"
