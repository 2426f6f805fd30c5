"""The description of the machine is read from the system, not guessed."""

import os
from types import SimpleNamespace

import numpy as np

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


def test_the_processor_is_named_as_the_system_names_it(tmp_path, monkeypatch):
    info = tmp_path / "cpuinfo"
    info.write_text("processor\t: 0\nmodel name\t: Some CPU @ 3 GHz\nflags\t: fpu\n")
    assert host.processor(info) == "Some CPU @ 3 GHz"
    info.write_text("processor\t: 0\nCPU part\t: 0xd0c\n")
    monkeypatch.setattr(host.platform, "processor", lambda: "")
    monkeypatch.setattr(host.platform, "machine", lambda: "aarch64")
    for unnamed in (info, tmp_path / "nothing"):
        assert host.processor(unnamed) == "aarch64"


def test_memory_is_pages_times_their_size(monkeypatch):
    told = {"SC_PHYS_PAGES": 1000, "SC_PAGE_SIZE": 4096}
    monkeypatch.setattr(os, "sysconf_names", told, raising=False)
    monkeypatch.setattr(os, "sysconf", told.get, raising=False)
    assert host.memory_bytes() == 4_096_000


def test_macos_is_asked_in_its_own_way(tmp_path, monkeypatch):
    told = {
        "hw.memsize": "17179869184",
        "hw.l1dcachesize": "65536",
        "machdep.cpu.brand_string": "Apple M1",
    }

    def run(command, **options):
        assert command[:2] == ["sysctl", "-n"]
        return SimpleNamespace(stdout=told.get(command[2], "") + "\n")

    monkeypatch.setattr(host.platform, "system", lambda: "Darwin")
    monkeypatch.setattr(host.subprocess, "run", run)
    monkeypatch.setattr(os, "sysconf_names", {}, raising=False)
    assert host.memory_bytes() == 2**34
    assert host.processor(tmp_path / "nothing") == "Apple M1"
    assert host.caches(tmp_path) == (host.Cache(1, "Data", 2**16, ""),)


def test_what_no_system_tells_is_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr(host.platform, "system", lambda: "Plan 9")
    monkeypatch.setattr(os, "sysconf_names", {}, raising=False)
    assert host.memory_bytes() == 0 and host.caches(tmp_path) == ()


def test_versions_say_what_is_absent():
    found = host.versions("numpy", "no-such-package-as-this")
    assert found == {
        "numpy": np.__version__,
        "no-such-package-as-this": "not installed",
    }
