"""Give meaning to the operator and function names of the engines (chapter 16).

Operators take float32 and return float32, comparisons return 1.0 or 0.0. The bit
operators work on integers without any cast.
"""

from collections.abc import Callable

import numpy as np

from flashlib.errors import MachineError

__all__ = [
    "ARITHMETIC",
    "BITWISE",
    "COMPARISONS",
    "FUNCTIONS",
    "OPERATORS",
    "REDUCTIONS",
    "apply",
    "named",
]


def _truth(function: Callable) -> Callable:
    """Make a predicate return float32 ones and zeros, or integers for integers."""

    def compare(a, b):
        out = function(a, b)
        kind = np.result_type(a)
        return out.astype(kind if kind.kind in "iu" else np.float32)

    return compare


ARITHMETIC: dict[str, Callable] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "power": np.power,
    "less": _truth(np.less),
    "less_equal": _truth(np.less_equal),
    "greater": _truth(np.greater),
    "greater_equal": _truth(np.greater_equal),
    "equal": _truth(np.equal),
    "not_equal": _truth(np.not_equal),
    "logical_and": _truth(np.logical_and),
    "logical_or": _truth(np.logical_or),
}
BITWISE: dict[str, Callable] = {
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
    "left_shift": np.left_shift,
    "right_shift": np.right_shift,
}
OPERATORS = ARITHMETIC | BITWISE
COMPARISONS = ("equal", "less", "less_equal", "greater", "greater_equal")

REDUCTIONS: dict[str, Callable] = {
    "add": lambda x: x.sum(-1, dtype=x.dtype),
    "subtract": lambda x: x[..., 0] - x[..., 1:].sum(-1, dtype=x.dtype),
    "multiply": lambda x: x.prod(-1, dtype=x.dtype),
    "maximum": lambda x: x.max(-1),
    "minimum": lambda x: x.min(-1),
    "logical_and": lambda x: x.all(-1).astype(x.dtype),
    "logical_or": lambda x: x.any(-1).astype(x.dtype),
    "bitwise_and": lambda x: np.bitwise_and.reduce(x, -1),
    "bitwise_or": lambda x: np.bitwise_or.reduce(x, -1),
    "bitwise_xor": lambda x: np.bitwise_xor.reduce(x, -1),
}


def _sine(x: np.ndarray) -> np.ndarray:
    """Sine on [-pi, pi]; beyond, the cubic of the last piece runs away.

    The public reference warns that inputs outside the range are extrapolated, and
    gives sin(9.0) as about 27.65: the cubic around the nearer end does just that.
    """
    beyond = x - np.copysign(np.float32(np.pi), x)
    return np.where(np.abs(x) <= np.float32(np.pi), np.sin(x), beyond**3 / 6 - beyond)


FUNCTIONS: dict[str, Callable] = {
    "copy": np.array,
    "exp": np.exp,
    "log": np.log,
    "sin": _sine,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "reciprocal": np.reciprocal,
    "square": np.square,
    "abs": np.abs,
    "sign": np.sign,
    "relu": lambda x: np.maximum(x, np.float32(0)),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "tanh": np.tanh,
}


def named(
    table: dict[str, Callable] | tuple[str, ...], name: str, argument: str
) -> Callable:
    """Look an operator or function up, or refuse and list the known ones."""
    if not isinstance(name, str) or name not in table:
        raise MachineError(
            f"{argument} has {name!r}; expected one of {', '.join(table)}; the engine "
            "has no other; name one of these"
        )
    return table[name] if isinstance(table, dict) else OPERATORS[name]


def apply(name: str, left: np.ndarray, right: object, reverse: bool) -> np.ndarray:
    """Return ``left op right``, or ``right op left`` when reversed."""
    function = OPERATORS[name]
    return function(right, left) if reverse else function(left, right)
