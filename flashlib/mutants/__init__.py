"""A museum of wrong kernels, each named, each with the chapter it belongs to (book).

>>> from flashlib.mutants import MUTANTS
>>> MUTANTS["no_max"].fault
'It never subtracts the largest score.'
"""

from flashlib.mutants.loop import PlainLoop
from flashlib.mutants.museum import MUTANTS
from flashlib.mutants.mutant import Mutant

__all__ = ["MUTANTS", "Mutant", "PlainLoop"]
