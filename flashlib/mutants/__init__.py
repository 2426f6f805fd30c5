"""A museum of wrong kernels, each named, each with the chapter it belongs to (book).

>>> from flashlib.mutants import MUTANTS
>>> MUTANTS["no_max"].fault
'It never subtracts the largest score.'
"""

from .loop import PlainLoop
from .museum import MUTANTS
from .mutant import Mutant

__all__ = ["MUTANTS", "Mutant", "PlainLoop"]
