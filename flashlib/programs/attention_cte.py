"""Attend from a whole prompt: the prefill kernel, sibling of decode (chapter 23)."""

from typing import NamedTuple

import numpy as np

from flashlib.errors import ArgumentError, ShapeError
from flashlib.machine.machine import Machine
from flashlib.machine.pair import CorePair
from flashlib.machine.spec import NC_V3, Spec
from flashlib.machine.tile import Tile
from flashlib.machine.trace import Trace
from flashlib.programs.blocks import PARTITIONS
from flashlib.programs.cte import checks
from flashlib.programs.cte.kernel import run_core
from flashlib.programs.cte.run import CteRun
from flashlib.programs.cte.sizes import CteSizes
from flashlib.programs.refusals import (
    as_array,
    check_core,
    check_flags,
    check_sink,
)

__all__ = ["CteResult", "attention_cte"]


class CteResult(NamedTuple):
    """What the prefill kernel returns.

    ``out`` is ``[batch, seq_q, head_dim]``, or ``[batch, head_dim, seq_q]`` with
    tp_out, in the type of q. ``neg_max`` and ``recip`` are ``[batch, 128, groups]``
    float32: row ``128 g + p`` at ``[p, g]``, minus its maximum and 1 / its sum, with
    the sink in both. One trace per core.
    """

    out: np.ndarray
    neg_max: np.ndarray
    recip: np.ndarray
    traces: tuple[Trace, ...]


def attention_cte(
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    *,
    scale: float | None = None,
    causal: bool = True,
    window: int | None = None,
    sink: np.ndarray | None = None,
    k_prior: np.ndarray | None = None,
    v_prior: np.ndarray | None = None,
    prior_used_len: object = None,
    bound_min: np.ndarray | None = None,
    bound_max: np.ndarray | None = None,
    tp_q: bool = True,
    tp_k: bool = False,
    tp_out: bool = False,
    q_offset: int = 0,
    q_stride: int = 1,
    spec: Spec = NC_V3,
    lnc: int = 1,
) -> CteResult:
    """Attend from all queries of a prompt; q, k, v and p are bfloat16 on chip.

    Parameters
    ----------
    q : ndarray
        ``[batch, seq_q, head_dim]``, or ``[batch, head_dim, seq_q]`` when tp_q is
        False. Heads are folded into the batch.
    k, v : ndarray
        ``[batch_kv, seq_k, head_dim]``; k ``[batch_kv, head_dim, seq_k]`` with tp_k.
        Row b reads key/value row ``b // (batch / batch_kv)``.
    scale : float, optional
        1/sqrt(head_dim) unless given; 1.0 is required with window, prior or bounds.
    causal : bool
        Row i sees keys up to ``q_offset + i * q_stride``: top-left aligned.
    window : int, optional
        Keys that a row keeps, itself included.
    sink : ndarray, optional
        ``[batch, 1]``: a logit without a value.
    k_prior, v_prior, prior_used_len : optional
        A cached prefix like k and v, of which the first rows count, as run-time data.
    bound_min, bound_max : ndarray, optional
        ``[seq_q, 1]``: row i keeps keys from the one up to below the other, so that
        packed sequences do not see each other.
    q_offset, q_stride : int
        Positions of the rows.
    spec : Spec
    lnc : int
        Physical cores, 1 or 2.

    Returns
    -------
    CteResult

    Raises
    ------
    ShapeError, DTypeError, ArgumentError, MachineError
        Before the first instruction.

    Examples
    --------
    >>> q = np.zeros((1, 3, 4), np.float32)
    >>> v = np.repeat(np.arange(3, dtype=np.float32), 4).reshape(1, 3, 4)
    >>> attention_cte(q, q, v).out[0, :, 0]
    array([0. , 0.5, 1. ], dtype=float32)
    """
    check_core(spec, lnc)
    check_flags(causal=causal, tp_q=tp_q, tp_k=tp_k, tp_out=tp_out)
    arrays = {"q": as_array("q", q), "k": as_array("k", k), "v": as_array("v", v)}
    prior = (k_prior, v_prior, prior_used_len)
    if any(x is None for x in prior) != all(x is None for x in prior):
        raise ArgumentError(
            "k_prior, v_prior and prior_used_len have "
            f"{sum(x is not None for x in prior)} of 3 values; expected all or none; a "
            "prefix has keys, values and a length; pass what is missing"
        )
    if k_prior is not None:
        arrays["k_prior"] = as_array("k_prior", k_prior)
        arrays["v_prior"] = as_array("v_prior", v_prior)
    tall = {"q": tp_q, "k": not tp_k, "out": not tp_out}
    packed = bound_min is not None or bound_max is not None
    positions = checks.checked_positions(window, q_offset, q_stride)
    switches = (bool(causal), *positions, packed)
    s = _sizes(arrays, tall, switches)
    scale = checks.checked_scale(scale, s)
    used = 0
    if k_prior is not None:
        used = checks.checked_prior_used(prior_used_len, s.prior)
    columns = {"sink": (sink, s.batch)}
    columns |= {"bound_min": (bound_min, s.seq_q), "bound_max": (bound_max, s.seq_q)}
    for name, (x, rows) in columns.items():
        if x is not None:
            arrays[name] = _column(name, as_array(name, x), rows)
    return _run(arrays, s, scale, used, tall, spec, lnc)


def _sizes(arrays: dict[str, np.ndarray], tall: dict, switches: tuple) -> CteSizes:
    """Check the shapes of queries, keys and values against each other."""
    for name, x in arrays.items():
        checks.check_array(name, x, "[batch, seq, head_dim], or as tp_q and tp_k say")
    batch, seq_q, d = _axes(arrays["q"], tall["q"])
    batch_kv, seq_k, _ = _axes(arrays["k"], tall["k"])
    seq_prior = 0
    if "k_prior" in arrays:
        _, seq_prior, _ = _axes(arrays["k_prior"], tall["k"])
    for suffix, length in (("", seq_k), ("_prior", seq_prior)):
        if f"k{suffix}" not in arrays:
            continue
        want = (batch_kv, length, d)
        for name in (f"k{suffix}", f"v{suffix}"):
            found = arrays[name].shape
            shape = want
            if name[0] == "k" and not tall["k"]:
                shape = (batch_kv, d, length)
            if found != shape:
                raise ShapeError(
                    f"{name} has shape {found}; expected {shape}; keys and values "
                    "share rows and head_dim with q; lay it out so"
                )
    causal, window, q_offset, q_stride, packed = switches
    s = CteSizes(
        batch, batch_kv, seq_q, seq_k, d, seq_prior,
        causal, window, q_offset, q_stride, packed,
    )  # fmt: skip
    checks.check_sizes(s)
    return s


def _column(name: str, x: np.ndarray, rows: int) -> np.ndarray:
    """Check a column, and what its numbers mean; return it in float32."""
    column = checks.checked_column(name, x, rows)
    if name == "sink":
        check_sink(column)
    else:
        checks.check_bound(name, x)  # as it was given: float32 rounds a fraction away
    return column


def _axes(x: np.ndarray, tall: bool) -> tuple[int, int, int]:
    """Batch, length and width of an array."""
    batch, a, b = x.shape
    return (batch, a, b) if tall else (batch, b, a)


def _run(
    arrays: dict[str, np.ndarray],
    s: CteSizes,
    scale: float,
    used: int,
    tall: dict,
    spec: Spec,
    lnc: int,
) -> CteResult:
    """Lay the arrays out, run the cores, copy the results out."""
    pair = CorePair(spec) if lnc == 2 else None
    cores = pair.cores if pair else (Machine(spec),)
    memory = cores[0].hbm
    hbm: dict[str, Tile] = {name: memory.put(x) for name, x in arrays.items()}
    io = arrays["q"].dtype
    shape = (s.batch, s.seq_q, s.head_dim)
    hbm["out"] = memory.alloc(
        shape if tall["out"] else (shape[0], shape[2], shape[1]), io
    )
    for name in ("neg_max", "recip"):
        hbm[name] = memory.alloc((s.batch, PARTITIONS, s.groups))
    shares = s.shares(lnc)

    def program(m: Machine) -> None:
        run_core(CteRun(m, s, scale, hbm, io, used, tall), shares[m.core])

    if pair:
        pair.run(program)
    else:
        program(cores[0])
    results = (hbm[name].numpy() for name in ("out", "neg_max", "recip"))
    return CteResult(*results, tuple(m.trace for m in cores))
