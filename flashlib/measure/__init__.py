"""Measurements, and the machine they are taken on (book)."""
