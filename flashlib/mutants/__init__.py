"""A museum of wrong kernels, each named, each with the chapter it belongs to (book).

Wrong loops of the engine are in `flashlib.mutants.loop`, wrong programs for the
machine in `flashlib.mutants.machine`.

Examples
--------
>>> from flashlib.mutants import MACHINE_MUTANTS, MUTANTS
>>> MUTANTS["no_max"].fault
'It never subtracts the largest score.'
>>> MACHINE_MUTANTS["zero_fill"].fault
'It fills the scores with 0 where minus infinity belongs.'
"""

from flashlib.mutants.loop.plain import PlainLoop
from flashlib.mutants.museum import MACHINE_MUTANTS, MUTANTS
from flashlib.mutants.mutant import Mutant

__all__ = ["MACHINE_MUTANTS", "MUTANTS", "Mutant", "PlainLoop"]
