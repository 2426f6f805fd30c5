"""Check what is claimed about the comparison with a reference (chapter 8)."""

import ast
from collections.abc import Callable
from importlib.resources import files

import numpy as np

from flashlib.attention import flash_attention
from flashlib.backends import available_backends
from flashlib.ledger.rows import Finding
from flashlib.mutants import MUTANTS, PlainLoop
from flashlib.reference import materialized_attention
from flashlib.testing import error_report, make_qkv, published_qkv, unit

BUILDERS = {"as_dense", "band_mask", "causal_mask", "document_mask", "window_mask"}
# What a call of flash attention runs through, as against tests and pages.
ENGINE = ("kernels", "cache", "backends", "attention.py", "decode.py", "varlen.py")
GRID = 2.0**-24


def _imports(path: object, names: set[str]) -> bool:
    """Say whether a module imports one of these names from another module."""
    text = path.read_text(encoding="utf-8")
    if not any(name in text for name in names):  # most files, without parsing them
        return False
    nodes = ast.walk(ast.parse(text))
    imports = (node for node in nodes if isinstance(node, ast.ImportFrom))
    return any(alias.name in names for node in imports for alias in node.names)


def _modules(root: object) -> list:
    """Return the Python files at or under a path."""
    if root.is_file():
        return [root] if root.name.endswith(".py") else []
    return [path for child in root.iterdir() for path in _modules(child)]


def mask_helper_for_tests() -> Finding:
    """Look for whoever builds a mask as a whole matrix."""
    package = files("flashlib")
    engine = [path for name in ENGINE for path in _modules(package / name)]
    users = [path for path in _modules(package) if _imports(path, BUILDERS)]
    running = [path.name for path in users if path in engine]
    return Finding.of(
        bool(users) and not running,
        f"of the {len(engine)} modules that compute flash attention here, "
        f"{len(running)} import a function that builds a whole mask; the "
        f"{len(users)} that do are tests of accuracy, figures and checks",
    )


def _differences(attention: Callable) -> dict[int, float]:
    """Run the published check and return the largest difference per length."""
    found = {}
    for index, n in enumerate((1, 17, 100)):
        call = published_qkv(n, index)
        reference = materialized_attention(*call, causal=True).out
        got = attention(*call, causal=True).out
        found[n] = float(np.abs(got - reference).max())
    return found


def _by(backend: str) -> dict[int, float]:
    return _differences(
        lambda q, k, v, **options: flash_attention(q, k, v, **options, backend=backend)
    )


def published_check() -> Finding:
    """Hold every backend of the package against the float32 score matrix."""
    worst = {name: max(_by(name).values()) for name in available_backends()}
    return Finding.of(
        max(worst.values()) < 1e-4,
        f"at 1, 17 and 100 tokens the backends {', '.join(worst)} differ from the "
        f"score matrix by at most {max(worst.values()):.2e}",
    )


def published_differences() -> Finding:
    """Count the published figures, and ours, in steps of the float32 grid."""
    printed = {17: "1.79e-07", 100: "2.38e-07"}
    steps = {n: round(float(gap) / GRID) for n, gap in printed.items()}
    whole = all(f"{steps[n] * GRID:.2e}" == printed[n] for n in printed)
    loops = [name for name in ("numpy", "scalar") if name in available_backends()]
    found = [_by(name) for name in loops]
    ours = {n: max(one[n] for one in found) for n in printed}
    near = all(0.5 <= ours[n] / float(printed[n]) <= 2 for n in printed)
    said = ", ".join(f"{ours[n]:.2e} at {n}" for n in printed)
    return Finding.of(
        whole and near,
        f"the printed figures are {steps[17]} and {steps[100]} times 2**-24, steps of "
        f"the float32 grid below 1; the loops here give {said} on inputs of the same "
        "kind (the generator is not printed)",
    )


class TwoTiles(PlainLoop):
    """It has room for two tiles and forgets the rest."""

    def tiles(self, lo: int, hi: int, length: int) -> object:
        return super().tiles(lo, min(hi, lo + 2 * length), length)


def boundary_lengths() -> Finding:
    """List the rows that three causal squares contain, and break the third tile."""
    rows = {i + 1 for n in (1, 17, 100) for i in range(n)}
    there = [n for n in (63, 64, 65, 127, 128, 129) if n in rows]
    passes = max(_differences(TwoTiles()).values()) < 1e-4
    q, k, v = make_qkv(1, 129, n_heads=1, n_kv_heads=1)
    exact = materialized_attention(q, k, v).out
    off = float(np.abs(TwoTiles()(q, k, v).out - exact).max())
    return Finding.of(
        not (passes and off > 1e-4),
        "a causal square holds a row of every length up to its own, so rows of "
        f"{', '.join(map(str, there))} keys are covered, but no row meets a third "
        f"tile: a loop that stops after two tiles passes; at 129 tokens it is off by "
        f"{off:.2f}",
    )


def right_tolerance() -> Finding:
    """Let a wrong exponential pass it, and a right loop fail it."""
    q, k, v = published_qkv(100, 2)
    q, k, v = q[:, :2], k[:, :1], v[:, :1]  # one group is enough
    short = MUTANTS["short_exp"].attention
    report = error_report(short(q, k, v, causal=True), q, k, v, causal=True)
    measured = max(_differences(PlainLoop()).values())
    large = v * np.float32(1000)
    exact = materialized_attention(q, k, large, causal=True).out
    off = float(np.abs(PlainLoop()(q, k, large, causal=True).out - exact).max())
    misled = "short_exp" if report.out < 1e-4 and not report.ok else "no wrong kernel"
    broken = misled == "short_exp" or off > 1e-4
    units = 1e-4 / unit(q, k, v, causal=True)
    return Finding.of(
        not broken,
        f"1e-4 is {units:.0f} units and {1e-4 / measured:.0f} times the right loop's "
        f"difference; {misled} passes it at {report.out:.1e}, and with values 1,000 "
        f"times as large the right loop is off by {off:.1e}",
    )
