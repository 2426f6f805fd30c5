"""Exercises of the chapters; a checker names the first wrong step (book).

One module per chapter: ``from flashlib.exercises import ch04``.
"""
