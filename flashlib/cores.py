"""Count the cores that this process may use (chapter 7)."""

import os

__all__ = ["usable_cores"]


def usable_cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
