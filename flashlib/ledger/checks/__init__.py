"""Checks behind the verdicts, one module per chapter (book)."""
