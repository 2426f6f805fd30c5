"""Every mutant by its name, in the order of the chapters (book)."""

from __future__ import annotations

import inspect
from types import MappingProxyType

from flashlib.mutants import blocking, hiding, paging, rescaling, walking
from flashlib.mutants.mutant import Mutant

MUTANTS = MappingProxyType(
    {
        name: Mutant(name, wing.CHAPTER, inspect.getdoc(loop), loop())
        for wing in (rescaling, walking, hiding, blocking, paging)
        for name, loop in wing.FAULTS.items()
    }
)
