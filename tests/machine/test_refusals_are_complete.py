"""Every module of instructions has its file of illegal calls, with cases in it.

Which instruction a case is about is not read from the text: the calls are made, and
what has refused is written down.
"""

from functools import cache
from importlib import import_module
from pathlib import Path

import pytest
from machine.conftest import Bench

from flashlib import MachineError
from flashlib.machine import Machine
from flashlib.machine.instruction import REGISTRY

FILES = sorted(path.stem for path in Path(__file__).parent.glob("test_refused_by_*.py"))
MODULES = sorted({x.body.__module__.rpartition(".")[2] for x in REGISTRY.values()})


class Watched:
    """An instruction set that writes down the names of what refuses a call."""

    def __init__(self, isa, refused):
        self._isa, self._refused = isa, refused

    def __getattr__(self, name):
        def call(*args, **kwargs):
            try:
                return getattr(self._isa, name)(*args, **kwargs)
            except MachineError:
                self._refused.append(name)
                raise

        return call


@cache
def refusals(file):
    """Run the cases of a file; return what refused in each of them, one list a case."""
    found = []
    module = import_module(f"machine.{file}")
    for case in module.test_refused_with_reason_and_without_effect.cases:
        setup, error, _, generation = case.values
        bench, refused = Bench(generation), []
        bench.isa = Watched(bench.isa, refused)
        call = setup(bench)
        with pytest.raises(error):
            call()
        found.append(refused)
    return found


@pytest.mark.parametrize("module", MODULES)
def test_every_instruction_is_refused_in_the_file_of_its_module(module):
    cases = refusals(f"test_refused_by_{module}")
    assert len(cases) >= 3
    own = {name for name, x in REGISTRY.items() if x.body.__module__.endswith(module)}
    assert own and own <= {name for refused in cases for name in refused}


def test_no_case_is_lost():
    assert len(MODULES) == 9 and set(dir(Machine().isa)) == set(REGISTRY)
    assert sum(len(refusals(file)) for file in FILES) >= 169
