"""Loops that Numba compiles; Numba is imported here and nowhere else (chapter 5)."""
