"""Refuse calls of a whole kernel before its first instruction (chapters 21, 23)."""

from flashlib.errors import MachineError, ShapeError
from flashlib.machine.spec import Spec


def refuse(condition: bool, message: str, error: type[Exception] = ShapeError) -> None:
    """Raise when the condition holds."""
    if condition:
        raise error(message)


def check_core(spec: Spec, lnc: int) -> None:
    """The generation has what the kernels use; one core or two run them."""
    refuse(
        spec.generation < 3,
        f"spec is {spec.name}; expected generation 3 or later; it has no dma_transpose "
        "and no range_select",
        MachineError,
    )
    refuse(
        lnc not in (1, 2),
        f"lnc is {lnc!r}; expected 1 or 2; a logical core is one physical core or two",
    )
