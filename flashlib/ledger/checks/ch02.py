"""Check what is claimed about the size and traffic of score matrices (chapter 2)."""

import numpy as np

from flashlib.experiments.published import LONG, SHORT, fits
from flashlib.ledger.rows import Finding
from flashlib.measure.host import TYPICAL_CACHES, cache_sizes
from flashlib.traffic import (
    ENGINE_PASSES,
    QWEN3_0_6B,
    TEXT_PASSES,
    attention_flops,
    model_score_bytes,
    model_score_traffic,
    score_bytes,
    tensor_bytes,
)


def one_matrix() -> Finding:
    """Let NumPy lay out the score matrix of one head."""
    matrix = np.empty((SHORT, SHORT), np.float32)
    right = (matrix.size, round(matrix.nbytes / 1e6, 2)) == (261_121, 1.04)
    return Finding.of(
        right,
        f"a float32 array of {SHORT} by {SHORT} holds {matrix.size:,} floats in "
        f"{matrix.nbytes:,} B",
    )


def all_matrices() -> Finding:
    """Add the sizes of all matrices of one prefill."""
    total = model_score_bytes(SHORT)
    near = abs(total - 500e6) < 0.1 * 500e6
    return Finding.of(
        near,
        f"{QWEN3_0_6B.score_matrices} matrices of {score_bytes(SHORT):,} B add up to "
        f"{total / 1e6:.1f} MB; that is a sum of sizes, not a traffic (row D3)",
    )


def traffic_of_the_passes() -> Finding:
    """Count the reads and writes of the passes instead of the sizes."""
    sizes = model_score_bytes(SHORT)
    least, most = (
        model_score_traffic(SHORT, passes) for passes in (TEXT_PASSES, ENGINE_PASSES)
    )
    return Finding.of(
        least < 1.2 * sizes,
        f"write, rewrite, rewrite, read move {least / 1e9:.1f} GB, and a path with its "
        f"own scale pass and a softmax in three passes {most / 1e9:.1f} GB; "
        f"{sizes / 1e6:.1f} MB is what the matrices occupy",
    )


def quadratic_storage() -> Finding:
    """Double the prompt and see which arrays of attention grow fourfold."""
    matrix = score_bytes(2 * SHORT) / score_bytes(SHORT)
    tensors = tensor_bytes(2 * SHORT, 2 * SHORT) / tensor_bytes(SHORT, SHORT)
    return Finding.of(
        (matrix, tensors) == (4.0, 2.0),
        f"twice the prompt makes the score matrix {matrix:g} times and q, k, v and out "
        f"{tensors:g} times as large; this is about storage, row D4 is about work",
    )


def quadratic_work_remains() -> Finding:
    """Look for growth with the square of the prompt in a path without the matrix."""
    flops = [attention_flops(n * n, 1, QWEN3_0_6B.head_dim) for n in (SHORT, LONG)]
    growth = flops[1] / flops[0]
    _, fit = fits("pool")
    shares = [fit.square_share(n) for n in (SHORT, LONG)]
    remains = growth > LONG / SHORT and min(shares) > 0.05
    return Finding.of(
        not remains,
        f"without the matrix four times the tokens still take {growth:g} times the "
        f"operations; a fit of a n + b n^2 through the two quoted flash times on the "
        f"pool gives the quadratic term {shares[0]:.0%} at {SHORT} and {shares[1]:.0%} "
        f"at {LONG:,} tokens",
    )


def longer_prompt() -> Finding:
    """Count one matrix and all of them at 2,044 tokens."""
    one, total = score_bytes(LONG), model_score_bytes(LONG)
    right = round(one / 1e6, 1) == 16.7 and total > 7e9
    return Finding.of(
        right,
        f"at {LONG:,} tokens one matrix takes {one / 1e6:.1f} MB and all of them "
        f"{total / 1e9:.2f} GB",
    )


def has_to_stream_through_memory() -> Finding:
    """Compare one matrix with the last cache of a common processor, and of this one."""
    level = max(TYPICAL_CACHES)
    held = [n for n in (SHORT, LONG) if score_bytes(n) <= TYPICAL_CACHES[level]]
    said = " and ".join(f"{n:,}" for n in held) or "neither 511 nor 2,044"
    # The caches of this machine are evidence only: the verdict is on a claim about
    # CPUs in general and must not change with the host that builds the page.
    here = cache_sizes()
    host_says = f"{here[max(here)]:,} B" if here else "a size the system does not tell"
    return Finding.of(
        SHORT not in held,
        f"the L{level} cache of a common desktop processor holds "
        f"{TYPICAL_CACHES[level]:,} B, enough for the matrix of one head at {said} "
        f"tokens ({score_bytes(SHORT):,} and {score_bytes(LONG):,} B); the last cache "
        f"of this machine holds {host_says}",
    )
