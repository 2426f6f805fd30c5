"""Describe the machine that runs the book: processor, caches, memory (book).

A measured time means nothing without the machine it was taken on. What the system
does not tell is left out rather than guessed.
"""

import os
import platform
import re
import subprocess
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

__all__ = [
    "TYPICAL_CACHES",
    "Cache",
    "cache_sizes",
    "caches",
    "memory_bytes",
    "processor",
    "versions",
]

CPU = "/sys/devices/system/cpu/cpu0/cache"
CPU_INFO = "/proc/cpuinfo"
UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}
MACOS_CACHES = {"l1dcachesize": (1, "Data"), "l2cachesize": (2, "Unified")}
# Bytes by level of a common desktop core (AMD Zen 4: 32 KiB and 1 MiB per core, 32 MiB
# per eight cores), to set beside this machine; row D5 of the ledger is decided on them.
TYPICAL_CACHES = {1: 32 * 2**10, 2: 2**20, 3: 32 * 2**20}


class Cache(NamedTuple):
    """One cache as core 0 sees it: level, kind, bytes, and the cores that share it."""

    level: int
    kind: str
    n_bytes: int
    shared_by: str


def processor(info: str | Path = CPU_INFO) -> str:
    """Return the processor's name as the system gives it.

    Parameters
    ----------
    info : str or Path
        Where the system describes it (Linux); elsewhere macOS is asked.
    """
    info = Path(info)
    found = re.search(r"model name\s*:\s*(.+)", _read(info)) if info.exists() else None
    name = found[1] if found else _sysctl("machdep.cpu.brand_string")
    return name or platform.processor() or platform.machine()


def memory_bytes() -> int:
    """Return the bytes of main memory, or 0 where the system does not say."""
    if "SC_PHYS_PAGES" in getattr(os, "sysconf_names", ()):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return int(_sysctl("hw.memsize") or 0)


def caches(folder: str | Path = CPU) -> tuple[Cache, ...]:
    """Return the data and unified caches of core 0, smallest level first.

    Parameters
    ----------
    folder : str or Path
        Where the system describes them (Linux); elsewhere macOS is asked.

    Returns
    -------
    tuple of Cache
        Empty where the system does not say.
    """
    found = [_linux_cache(entry) for entry in sorted(Path(folder).glob("index*"))]
    if not found:
        for name, (level, kind) in MACOS_CACHES.items():
            size = int(_sysctl(f"hw.{name}") or 0)
            found += [Cache(level, kind, size, "")] if size else []
    return tuple(sorted(c for c in found if c.kind != "Instruction"))


def cache_sizes() -> dict[int, int]:
    """Return the bytes of each data cache of this machine by level, or nothing."""
    return {cache.level: cache.n_bytes for cache in caches()}


def versions(*packages: str) -> dict[str, str]:
    """Return the installed version of each package; absent ones say so."""
    found = {}
    for name in packages:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


def _linux_cache(entry: Path) -> Cache:
    digits, unit = re.fullmatch(r"(\d+)([KMG]?)", _read(entry / "size")).groups()
    return Cache(
        int(_read(entry / "level")),
        _read(entry / "type"),
        int(digits) * UNITS[unit],
        _read(entry / "shared_cpu_list"),
    )


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8").strip()


def _sysctl(name: str) -> str:
    """Ask macOS; other systems answer with nothing."""
    if platform.system() != "Darwin":
        return ""
    answer = subprocess.run(["sysctl", "-n", name], capture_output=True, text=True)
    return answer.stdout.strip()
