"""Name every way in which a call can be refused (book).

The tree is small on purpose. A caller who catches :class:`FlashError` catches
all of it; a caller who knows NumPy catches ``ValueError`` and ``TypeError``
and still gets the ordinary cases, because every class also derives from the
built-in that fits.

Messages have one form, in lower case and on one line: *argument has value;
expected; rule in field terms; remedy if any*.
"""

__all__ = [
    "ArgumentError",
    "BankError",
    "CapacityError",
    "DTypeError",
    "FlashError",
    "FreeSizeError",
    "MachineError",
    "OutOfBoundsError",
    "PartitionError",
    "PlacementError",
    "Refused",
    "ShapeError",
    "UninitializedError",
]

# Characters of a value that a message shows.
LONGEST = 100


class FlashError(Exception):
    """Root of everything that flashlib raises on purpose."""


class ShapeError(FlashError, ValueError):
    """A rank or a size that does not fit: q, k, v, mask, bias, sink, tables."""


class ArgumentError(FlashError, ValueError):
    """A value out of range, or a name that is not known."""


class DTypeError(FlashError, TypeError):
    """An element type that the function does not compute with."""


class CapacityError(FlashError, ValueError):
    """More rows, pages or bytes than the memory has room for."""


class Refused(FlashError, RuntimeError):
    """A backend says no to an explicit algorithm; the message is its reason."""


class MachineError(FlashError, ValueError):
    """A program that the simulated machine cannot run."""


class PlacementError(MachineError):
    """An operand in a memory that the instruction or its engine cannot reach."""


class PartitionError(MachineError):
    """A partition count, start or axis beyond the partitions of the machine."""


class FreeSizeError(MachineError):
    """A free (non-partition) size or access pattern that does not fit."""


class BankError(MachineError):
    """An accumulation bank that is crossed, taken or unknown."""


class OutOfBoundsError(MachineError):
    """A slice or a table index that points outside its tensor."""


class UninitializedError(MachineError):
    """A read of elements that nothing has written yet."""


def shown(value: object) -> str:
    """Return any value on one line, for a message.

    Examples
    --------
    >>> shown("flush"), shown([1,
    ...                        2])
    ("'flush'", '[1, 2]')
    """
    try:
        line = " ".join(repr(value).split())
    except Exception:  # an object may fail to describe itself
        line = f"an object of type {type(value).__name__}"
    return line if len(line) <= LONGEST else line[: LONGEST - 3] + "..."
