"""Every mutant by its name, in the order of the chapters (book).

>>> [len(programs) for programs in WINGS.values()]
[5, 6, 8]
"""

from __future__ import annotations

import inspect
from types import MappingProxyType

from flashlib.mutants import (
    blocking,
    hiding,
    paging,
    rescaling,
    walking,
    wrong_caches,
    wrong_masks,
    wrong_steps,
)
from flashlib.mutants.mutant import Mutant

#: Wrong loops.
MUTANTS = MappingProxyType(
    {
        name: Mutant(name, wing.CHAPTER, inspect.getdoc(loop), loop())
        for wing in (rescaling, walking, hiding, blocking, paging)
        for name, loop in wing.FAULTS.items()
    }
)

#: Wrong programs for the machine, by the wing whose checks they are held to.
WINGS = MappingProxyType(
    {
        "steps": wrong_steps.FAULTS,
        "masks": wrong_masks.FAULTS,
        "caches": wrong_caches.FAULTS,
    }
)
#: Wrong programs for the machine.
MACHINE_MUTANTS = MappingProxyType(
    {name: wrong for programs in WINGS.values() for name, wrong in programs.items()}
)
