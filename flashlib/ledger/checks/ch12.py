"""Check what is claimed about the backend that keeps its matrix (chapter 12).

Times of the source are quoted; times of rungs and of the matrix are those that
``python -m flashlib.measure.verdict`` wrote down, with the machine.
"""

import numpy as np

from flashlib.attention import flash_attention
from flashlib.backends import Backend, available_backends, get_backend
from flashlib.errors import Refused
from flashlib.experiments.published import GPU, SHORT
from flashlib.ledger.rows import Finding
from flashlib.masks import attended
from flashlib.measure.record import Row, read
from flashlib.problem import Problem, attention_problem
from flashlib.testing import error_report, make_qkv
from flashlib.traffic import causal_pairs


def _rows(n: int = SHORT, cores: int = 1) -> dict[str, Row]:
    rows = read("verdict")["rows"]
    return {row.name: row for row in rows if (row.seq, row.cores) == (n, cores)}


def _problem(n: int = SHORT, causal: bool = True) -> Problem:
    return attention_problem(*make_qkv(n, n_heads=2), causal=causal)[0]


def _refused(backend: Backend, problem: Problem, algorithm: str) -> str:
    """Return the reason for a refusal, or nothing."""
    try:
        backend.choose(problem, algorithm)
    except Refused as refusal:
        return str(refusal)
    return ""


def _slower(name: str, n: int) -> float:
    """Return how many times as long as the matrix a rung took."""
    return 1 / _rows(n)[name].ratio


def twice_as_slow() -> Finding:
    """Replay the collision: a scalar loop on one core against matrix products."""
    quoted = GPU.streaming_on_one_core / GPU.before
    said = _refused(get_backend("blas"), _problem(), "flash")
    return Finding(
        "not testable here" if quoted > 2 and said else "contradicted",
        f"the GPU is not here; its quoted times stand {quoted:.2f} to 1. In the same "
        f"roles a scalar loop took {_slower('scalar', 511):.1f} times as long as the "
        f"matrix products of NumPy at 511 tokens and {_slower('scalar', 2044):.1f} at "
        f"2,044, on one core, and the blas backend refuses to stream",
    )


def right_by_default() -> Finding:
    """Run every backend, and look which of them replace the default."""
    call = make_qkv(70, n_heads=4, n_kv_heads=2, head_dim=16, seed=12)
    names = available_backends()
    wrong = [
        name
        for name in names
        if not error_report(
            flash_attention(*call, causal=True, backend=name), *call, causal=True
        ).ok
    ]
    own = [name for name in names if type(get_backend(name)).flash is not Backend.flash]
    return Finding.of(
        not wrong and 0 < len(own) < len(names),
        f"{len(names) - len(wrong)} of {len(names)} backends are right by the rule of "
        f"the contract; {len(own)} replace the default ({', '.join(own)}), and one of "
        f"them, blas, by something that is not the streaming loop",
    )


def at_least_as_strong() -> Finding:
    """Look for a rung that computes more slowly than the matrix path, and wins."""
    weaker = {}
    for n in (SHORT, 2044):
        rows = _rows(n)
        done = rows["blas"].rate * n * n / causal_pairs(n)
        for name, row in rows.items():
            if row.ratio > 1 and row.rate < done:
                weaker[name, n] = row.rate / done
    lost = _slower("scalar", SHORT)
    told = ", ".join(f"{name} at {n:,} with {x:.2f}" for (name, n), x in weaker.items())
    return Finding.of(
        not weaker and lost > 1,
        f"a weak machine does lose: a scalar loop took {lost:.1f} times as long; but "
        f"the bar is lower than as strong, since half the pairs count: among the rungs "
        f"that won although they computed more slowly are {told or 'none, 0'} of the "
        f"rate of the matrix path",
    )


def mask_where_asked() -> Finding:
    """Ask the matrix path for both, and see what it masks."""
    blas = get_backend("blas")
    chosen = {
        blas.choose(_problem(causal=causal)).algorithm for causal in (True, False)
    }
    cells = [
        attended(_problem(64, causal), 0, range(64), range(64))
        for causal in (True, False)
    ]
    hidden = [0 if cell is None else int(np.sum(~cell)) for cell in cells]
    return Finding.of(
        chosen == {"materialized"} and hidden == [64 * 63 // 2, 0],
        f"our replica of that backend chooses {', '.join(chosen)} for both, and at 64 "
        f"tokens hides {hidden[0]:,} cells of a causal one and {hidden[1]} of a full "
        f"one, for which it makes no mask",
    )


def decided_by_each_backend() -> Finding:
    """Ask every backend, and compare one algorithm in several kernels."""
    problem = _problem()
    choices = {
        name: get_backend(name).choose(problem).algorithm
        for name in available_backends()
    }
    rows = _rows()
    best = max((row for row in rows.values()), key=lambda row: row.ratio)
    return Finding.of(
        len(set(choices.values())) == 2 and rows["scalar"].ratio < 1 < best.ratio,
        f"on one problem {sum(c == 'flash' for c in choices.values())} backends choose "
        f"flash and {sum(c != 'flash' for c in choices.values())} the matrix; a kernel "
        f"written for the machine ({best.name}) turns {1 / rows['scalar'].ratio:.1f} "
        f"times as slow into {best.ratio:.1f} times as fast, on the same processor",
    )


def negative_result_is_told() -> Finding:
    """Look for the numbers, the reason, and what they changed."""
    lost = [row for row in _rows().values() if row.ratio < 1]
    reason = _refused(get_backend("blas"), _problem(), "flash")
    return Finding.of(
        GPU.streaming_on_one_core > GPU.before and bool(lost) and bool(reason),
        f"the source gives {GPU.before / 1000:.2f} s before, "
        f"{GPU.streaming_on_one_core / 1000:.1f} s with the loop and "
        f"{GPU.refusing / 1000:.2f} s after the refusal, and a reason; here "
        f"{len(lost)} rungs are slower than the matrix at {SHORT} tokens, and a test "
        "holds the refusal of the blas backend",
    )


def blame_the_algorithm() -> Finding:
    """Keep the algorithm and change the kernel."""
    told, turned = [], True
    for n in (SHORT, 2044):
        rows = _rows(n)
        turned &= rows["scalar"].ratio < 1 < rows["blocked"].ratio
        told.append(
            f"at {n:,} tokens a scalar loop takes {1 / rows['scalar'].ratio:.1f} times "
            f"as long as the matrix products and a blocked one "
            f"{1 / rows['blocked'].ratio:.2f} times"
        )
    return Finding.of(
        not turned,
        f"{'; '.join(told)}: it is the same algorithm with the same traffic, so the "
        "loss belongs to the kernel and to the core it ran on",
    )
