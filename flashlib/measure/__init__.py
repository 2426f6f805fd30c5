"""Measurements, and the machine they are taken on (book).

``python -m flashlib.measure`` lists what can be measured. Every measurement checks
its results before it starts a clock, prints a table and writes a record.
"""

__all__ = ["MEASUREMENTS"]

# Modules with a `main` that takes arguments; the others are parts of these.
MEASUREMENTS = (
    "prefill",
    "decode",
    "paged",
    "ladder",
    "scaling",
    "memory",
    "attribution",
    "verdict",
    "whole_model",
    "margins",
    "first_call",
)
