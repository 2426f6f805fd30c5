"""Every mutant by its name, in the order of the chapters (book)."""

from __future__ import annotations

import inspect
from types import MappingProxyType

from . import hiding, rescaling, walking
from .mutant import Mutant

MUTANTS = MappingProxyType(
    {
        name: Mutant(name, wing.CHAPTER, inspect.getdoc(loop), loop())
        for wing in (rescaling, walking, hiding)
        for name, loop in wing.FAULTS.items()
    }
)
