"""Refuse calls of a whole kernel before its first instruction (chapters 21, 23)."""

import math
import numbers

import numpy as np

from flashlib.errors import ArgumentError, MachineError, ShapeError, shown
from flashlib.machine.spec import Spec

__all__ = [
    "as_array",
    "check_core",
    "check_flags",
    "check_sink",
    "check_whole",
    "finite",
    "is_whole",
    "optional_array",
]


def as_array(name: str, x: object) -> np.ndarray:
    """Return an array; refuse rows of unequal length."""
    try:
        return np.asarray(x)
    except ValueError:
        raise ShapeError(
            f"{name} has {shown(x)}; expected rows of one length; an axis has one "
            "size; pad the short ones"
        ) from None


def optional_array(name: str, x: object) -> np.ndarray | None:
    """Return an array, or None for None."""
    return None if x is None else as_array(name, x)


def check_flags(**flags: object) -> None:
    """Every switch is a Python or NumPy bool, nothing that merely acts like one."""
    for name, value in flags.items():
        if not isinstance(value, (bool, np.bool_)):
            raise ArgumentError(
                f"{name} has {shown(value)}; expected True or False; a switch has two "
                "positions; convert it with bool()"
            )


def check_whole(**values: object) -> None:
    """Every one is an integer; neither a fraction nor a bool counts as one."""
    for name, value in values.items():
        if not is_whole(value):
            raise ArgumentError(
                f"{name} has {shown(value)}; expected an integer; it counts rows, "
                "slots or heads; convert it with int()"
            )


def is_whole(value: object) -> bool:
    """Tell whether a value is an integer, and no bool."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def check_sink(sink: np.ndarray) -> None:
    """A sink is a logit: finite, or -inf for none."""
    found = sink[np.isnan(sink) | np.isposinf(sink)]
    if found.size > 0:
        raise ArgumentError(
            f"sink has {found[:1].tolist()}; expected finite numbers or -inf; it is "
            "the logit of a key without a value; use -inf for no sink"
        )


def finite(name: str, value: object) -> float:
    """Return a finite number, or refuse."""
    try:
        number = math.nan if isinstance(value, (bool, str)) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    with np.errstate(over="ignore"):
        fits = np.isfinite(np.float32(number))
    if not fits:
        raise ArgumentError(
            f"{name} has {shown(value)}; expected a finite number that float32 holds; "
            "it multiplies every score; replace it"
        )
    return number


def check_core(spec: Spec, lnc: int) -> None:
    """The generation has what the kernels use; one core or two run them."""
    if not isinstance(spec, Spec):
        raise MachineError(
            f"spec has {shown(spec)}; expected NC_V3, NC_V4 or another Spec; every "
            "limit comes from it; pass one of these"
        )
    if spec.generation < 3:
        raise MachineError(
            f"spec has {spec.name}; expected generation 3 or later; it has no "
            "dma_transpose and no range_select; use NC_V3 or NC_V4"
        )
    # a size of the call: how many cores share its arrays
    if not is_whole(lnc) or lnc not in (1, 2):
        raise ShapeError(
            f"lnc has {shown(lnc)}; expected 1 or 2; a logical core is one physical "
            "core or two; leave it out for one"
        )
