"""All checks by name, and the run of all of them over one function (book)."""

import warnings
from collections.abc import Callable
from types import MappingProxyType

from flashlib.contract import (
    accuracy,
    causal,
    dead_rows,
    heads,
    masks,
    sinks,
    softmax,
    tiles,
    unread,
    windows,
)

CHECKS = MappingProxyType(
    {
        check.name: check
        for module in (
            softmax,
            tiles,
            causal,
            windows,
            dead_rows,
            unread,
            masks,
            heads,
            sinks,
            accuracy,
        )
        for check in module.topic.checks
    }
)


def failures(attention: Callable) -> dict[str, str]:
    """Run every check and return what failed.

    Parameters
    ----------
    attention : callable
        Called like `flashlib.flash_attention`: ``attention(q, k, v, **options)``.

    Returns
    -------
    dict
        The message of each check that failed, by its name; empty for a right function.
    """
    found = {}
    for name, check in CHECKS.items():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)
                check.run(attention)
        except AssertionError as broken:
            found[name] = str(broken)
        except Exception as error:
            found[name] = f"raised {type(error).__name__}: {error}"
    return found
