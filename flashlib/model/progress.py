"""Show how far a long text has come (chapters 10, 13)."""

import sys
import time
from typing import TextIO

from flashlib.model.generate import Step

__all__ = ["ProgressBar"]

WIDTH = 30


class ProgressBar:
    """A callback for `generate` that draws one line and keeps it up to date.

    Parameters
    ----------
    total : int
        Tokens that are expected.
    stream : text stream, optional
        Where to draw; default: the standard error.

    Examples
    --------
    >>> bar = ProgressBar(4, stream=sys.stdout)
    >>> bar(Step(3, 7, 8, 0.5, 0.25, 0.7))
    \r[##############################] 4/4 tokens, ... per second
    """

    def __init__(self, total: int, stream: TextIO | None = None):
        self.total = total
        self.stream = sys.stderr if stream is None else stream
        self._began = time.monotonic()

    def __call__(self, step: Step) -> None:
        done = step.index + 1
        rate = done / max(time.monotonic() - self._began, 1e-9)
        filled = "#" * (WIDTH * done // max(self.total, 1))
        self.stream.write(
            f"\r[{filled:<{WIDTH}}] {done}/{self.total} tokens, {rate:.1f} per second"
        )
        if done == self.total:
            self.stream.write("\n")
        self.stream.flush()
