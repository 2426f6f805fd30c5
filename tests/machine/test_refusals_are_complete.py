"""Every module of instructions has its file of illegal calls, with cases in it."""

from pathlib import Path

import pytest

from flashlib.machine import Machine, machine

HERE = Path(__file__).parent
MODULES = sorted(Path(machine.__file__).parent.glob("isa_*.py"))
CASES = {path: path.read_text().count("\n@case(") for path in HERE.glob("*refused_by*")}


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.stem)
def test_a_module_of_instructions_has_its_cases(module):
    assert CASES[HERE / f"test_refused_by_{module.stem}.py"] >= 3


def test_no_case_is_lost():
    assert len(MODULES) == 9
    assert sum(CASES.values()) >= 169


def test_every_instruction_is_refused_somewhere():
    text = "".join(path.read_text() for path in CASES)
    assert not [name for name in dir(Machine().isa) if f"isa.{name}(" not in text]
