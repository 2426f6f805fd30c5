"""The cores of this process: those that the system lets it use, not all there are."""

import os
import subprocess
import sys

import pytest

from flashlib.cores import usable_cores

NARROWED = """
import os
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])
from flashlib.cores import usable_cores
print(usable_cores())
"""


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs Linux")
def test_a_process_that_is_held_to_one_core_counts_one():
    done = subprocess.run(
        [sys.executable, "-c", NARROWED], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["1"]


@pytest.mark.parametrize("allowed", [{3}, {0, 5, 9}])
def test_what_is_allowed_counts_wherever_it_lies(monkeypatch, allowed):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: allowed, raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    assert usable_cores() == len(allowed)


@pytest.mark.parametrize("told, cores", [(8, 8), (None, 1)])
def test_a_system_that_allows_nothing_special_is_asked_for_all(
    monkeypatch, told, cores
):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: told)
    assert usable_cores() == cores
