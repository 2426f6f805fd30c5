"""The description of the machine is read from the system, not guessed."""

import os

import numpy as np
import pytest

from flashlib.cores import usable_cores
from flashlib.measure import host


def write_cache(folder, level, kind, size, shared):
    folder.mkdir()
    for name, text in [
        ("level", level),
        ("type", kind),
        ("size", size),
        ("shared_cpu_list", shared),
    ]:
        (folder / name).write_text(f"{text}\n")


def test_caches_are_read_with_units_and_without_instruction_caches(tmp_path):
    write_cache(tmp_path / "index0", 1, "Data", "48K", "0")
    write_cache(tmp_path / "index1", 1, "Instruction", "32K", "0")
    write_cache(tmp_path / "index3", 3, "Unified", "36M", "0-7")
    assert host.caches(tmp_path) == (
        host.Cache(1, "Data", 48 * 1024, "0"),
        host.Cache(3, "Unified", 36 * 2**20, "0-7"),
    )


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="needs Linux")
def test_cores_are_those_of_this_process():
    assert usable_cores() == len(os.sched_getaffinity(0))


def test_processor_has_a_name_and_memory_is_a_count():
    assert host.processor().strip()
    assert host.memory_bytes() >= 0


def test_versions_say_what_is_absent():
    found = host.versions("numpy", "no-such-package-as-this")
    assert found == {
        "numpy": np.__version__,
        "no-such-package-as-this": "not installed",
    }
