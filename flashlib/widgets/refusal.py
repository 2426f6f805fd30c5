"""Show the words with which a call is refused (book)."""

import textwrap
from collections.abc import Callable

from flashlib.errors import FlashError


def refusal(call: Callable, /, *args: object, **options: object) -> str:
    """Call what the package has to refuse, and return its message.

    Parameters
    ----------
    call : callable
        It is called with the other arguments.

    Returns
    -------
    str
        Class and message of the error, in lines that fit a page.

    Raises
    ------
    AssertionError
        When nothing is refused: the page that shows the message would be wrong.

    Examples
    --------
    >>> import numpy as np
    >>> from flashlib import flash_attention
    >>> q = np.ones((2, 3, 4), np.float32)
    >>> print(refusal(flash_attention, q, q[:, :2], q[:, :2]))
    ShapeError: q has 3 heads; expected a multiple of n_kv_heads = 2; every KV
    head serves a whole group of query heads
    """
    try:
        call(*args, **options)
    except FlashError as error:
        return textwrap.fill(f"{type(error).__name__}: {error}", 78)
    raise AssertionError(f"{call} ran; expected a refusal")
