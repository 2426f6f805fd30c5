"""Run one length in a process of its own, to see how time and memory grow (chapter 9).

Peak memory belongs to a whole process, so every length runs in a fresh one.
"""

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

__all__ = ["N_HEADS", "N_KV_HEADS", "WIDTH", "Growth", "measure_apart", "measure_here"]

N_HEADS, N_KV_HEADS, WIDTH = 16, 8, 128


class Growth(NamedTuple):
    """One causal prefill.

    Attributes
    ----------
    seconds, low, high : float
        Median, fastest and slowest round.
    peak : float
        Bytes that the process held more than after a first small call.
    rights : float
        Bytes of q, k, v, the result, and K and V once more, in panels.
    """

    seconds: float
    low: float
    high: float
    peak: float
    rights: float


def measure_here(n: int, cores: int, rounds: int) -> Growth:
    """Measure a prefill of `n` tokens, a multiple of 64, in this process."""
    from flashlib.attention import flash_attention
    from flashlib.kernels.launch import limit_workers
    from flashlib.measure.timing import interleave
    from flashlib.testing import make_qkv

    limit_workers(cores)
    sizes = {"n_heads": N_HEADS, "n_kv_heads": N_KV_HEADS, "head_dim": WIDTH}
    small = make_qkv(64, **sizes)
    flash_attention(*small, causal=True)  # compilers need memory too
    before = _peak_bytes()
    q, k, v = (x.repeat(n // 64, axis=0) for x in small)
    times = interleave(
        {"flash": lambda: flash_attention(q, k, v, causal=True)}, rounds=rounds
    )
    rights = 2 * q.nbytes + 2 * k.nbytes + 2 * v.nbytes + q.nbytes // WIDTH
    return Growth(*times["flash"][:3], _peak_bytes() - before, rights)


def measure_apart(n: int, cores: int, rounds: int) -> Growth:
    """Measure as :func:`measure_here` does, in a process of its own."""
    call = f"print(*measure_here({n}, {cores}, {rounds}))"
    code = f"from flashlib.measure.growth import measure_here; {call}"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return Growth(*map(float, done.stdout.split()))


def _peak_bytes() -> int:
    """Return the most memory this process ever held (Linux)."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024
