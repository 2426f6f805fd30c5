"""Call a reader's function safely: with copies, and with stubs told apart (book)."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np


class WrongStepError(Exception):
    """A step of a checker does not hold; the message carries the values."""


class UnfilledError(Exception):
    """The answer is still the stub."""


def is_stub(answer: object) -> bool:
    """Say whether an answer, or any entry of it, is still to be filled in.

    An entry that is None was put there, and is for the checker to judge.

    Examples
    --------
    >>> is_stub([1, ...]), is_stub([(1, ...), (2, 3)]), is_stub([1, None])
    (True, True, False)
    """
    return answer is None or _has_gap(answer)


def _has_gap(answer: object) -> bool:
    if answer is ... or answer is NotImplemented:
        return True
    if isinstance(answer, np.ndarray):
        return answer.dtype == object and _has_gap(answer.ravel().tolist())
    return isinstance(answer, (list, tuple)) and any(map(_has_gap, answer))


def own_copy(value: object) -> object:
    """Copy arrays, and containers with all they hold; pass other objects on.

    What a checker hands out to be changed or watched (a machine, a memory) is an object
    of its own class and stays the same.
    """
    if type(value) is np.ndarray:
        return value.copy()
    if type(value) in (list, tuple, set):
        return type(value)(map(own_copy, value))
    if type(value) is dict:
        return {key: own_copy(entry) for key, entry in value.items()}
    return value


def _nothing() -> None: ...


def does_something(function: object) -> bool:
    """Say whether a function has a body: one that returns None forgot to return."""
    code = getattr(function, "__code__", None)
    return code is None or len(code.co_code) > len(_nothing.__code__.co_code)


class Guarded:
    """A reader's function that gets copies, so that it cannot spoil the checks.

    Parameters
    ----------
    function : callable
        Raises `UnfilledError` when called while it is a stub.

    Attributes
    ----------
    handed : sequence
        The copies that the last call got, as the call left them.
    raised : Exception or None
        What the function raised last.
    """

    def __init__(self, function: Callable) -> None:
        self.function = function
        self.handed: Sequence[object] = ()
        self.raised: Exception | None = None

    def __call__(self, *args: object, **options: object) -> object:
        self.handed = own_copy(args)
        named: Mapping[str, object] = own_copy(options)
        try:
            result = self.function(*self.handed, **named)
        except NotImplementedError:
            raise UnfilledError from None
        except Exception as error:
            self.raised = error
            raise
        if result is None and does_something(self.function):
            raise WrongStepError("your function returned None; does it return?")
        if is_stub(result):
            raise UnfilledError
        return result
