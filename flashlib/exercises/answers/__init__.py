"""Answers that certify the checkers: plausible faults, unusual right ones (book)."""
