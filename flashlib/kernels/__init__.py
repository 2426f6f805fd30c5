"""Loops that Numba compiles; nothing else in the package imports it (chapter 5)."""
