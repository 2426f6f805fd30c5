"""Every mutant by its name, in the order of the chapters (book).

Examples
--------
>>> [len(programs) for programs in WINGS.values()]
[5, 6, 8]
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from flashlib.mutants.loop import blocking, hiding, paging, rescaling, walking
from flashlib.mutants.loop.wrong_loop import WrongLoop
from flashlib.mutants.machine import wrong_caches, wrong_masks, wrong_steps
from flashlib.mutants.machine.wrong_program import WrongProgram
from flashlib.mutants.mutant import Mutant


def _together(wings: Iterable[Mapping[str, Mutant]]) -> Mapping[str, Mutant]:
    return MappingProxyType({name: one for wing in wings for name, one in wing.items()})


#: Wrong loops.
MUTANTS: Mapping[str, WrongLoop] = _together(
    wing.FAULTS for wing in (rescaling, walking, hiding, blocking, paging)
)

#: Wrong programs for the machine, by the wing whose checks they are held to.
WINGS: Mapping[str, Mapping[str, WrongProgram]] = MappingProxyType(
    {
        "steps": wrong_steps.FAULTS,
        "masks": wrong_masks.FAULTS,
        "caches": wrong_caches.FAULTS,
    }
)
#: Wrong programs for the machine.
MACHINE_MUTANTS: Mapping[str, WrongProgram] = _together(WINGS.values())
