"""Attend from new tokens to a cache: the decode kernel whole (chapters 20, 21, 22)."""

from collections import Counter
from typing import NamedTuple

import numpy as np

from flashlib.machine.machine import Machine
from flashlib.machine.pair import CorePair
from flashlib.machine.spec import NC_V3, Spec
from flashlib.machine.trace import Trace
from flashlib.programs.refusals import as_array, optional_array
from flashlib.programs.tkg.arrays import put_arrays
from flashlib.programs.tkg.config import TkgConfig
from flashlib.programs.tkg.kernel import run_core
from flashlib.programs.tkg.operands import TkgOperands, check_call
from flashlib.programs.tkg.pages import check_entries, live_entries
from flashlib.programs.tkg.run import Core, CoreRun
from flashlib.programs.tkg.sizes import TkgSizes

__all__ = ["TkgResult", "attention_tkg"]


class TkgResult(NamedTuple):
    """What the decode kernel returns.

    ``out`` is ``[batch, n_heads, head_dim, seq]``, or ``[head_dim, batch * n_heads *
    seq]`` with out_in_sb; ``k_out`` ``[batch, 1, head_dim, seq]`` or ``[head_dim,
    batch * seq]``, None without fuse_rope; ``traces`` and ``machines`` one per core.
    """

    out: np.ndarray
    k_out: np.ndarray | None
    traces: tuple[Trace, ...]
    machines: tuple[Machine, ...]

    def steps(self) -> dict[tuple[str, str], int]:
        """Count the instructions of all cores by step and name."""
        total: Counter[tuple[str, str]] = Counter()
        for trace in self.traces:
            total.update(trace.histogram(by=("step", "op")))
        return dict(total)


def attention_tkg(
    q: np.ndarray,
    k_active: np.ndarray,
    v_active: np.ndarray,
    k_prior: np.ndarray,
    v_prior: np.ndarray,
    *,
    config: TkgConfig,
    mask: np.ndarray | None = None,
    active_mask: np.ndarray | None = None,
    pos_ids: np.ndarray | None = None,
    start_pos_ids: np.ndarray | None = None,
    active_blocks_table: np.ndarray | None = None,
    sink: np.ndarray | None = None,
    inv_freqs: np.ndarray | None = None,
    rope_pos_ids: np.ndarray | None = None,
    spec: Spec = NC_V3,
    lnc: int = 1,
    hardened: bool = False,
) -> TkgResult:
    """Attend from ``seq`` new tokens per batch item to its cache and to each other.

    The last ``seq`` of ``curr_sprior`` slots are taken by the active rows, on chip;
    the cache itself is read and never written.

    Parameters
    ----------
    q, k_active : ndarray
        With qk_in_sb ``[head_dim, batch * n_heads * seq]`` and ``[head_dim, batch *
        seq]``; else ``[batch, n_heads, seq, head_dim]`` and ``[batch, 1, seq,
        head_dim]``. Scaled by 1/sqrt(head_dim) only with fuse_rope.
    v_active : ndarray
        ``[batch, 1, seq, head_dim]``.
    k_prior, v_prior : ndarray
        ``[batch or more, 1, full_sprior, head_dim]``, K ``[.., head_dim,
        full_sprior]`` unless tp_k_prior; with a table both ``[num_blocks, block_len,
        head_dim]``.
    config : TkgConfig
    mask : ndarray, optional
        ``[curr_sprior, batch, n_heads, seq]``, 1 = attend; exactly when use_pos_id is
        False. Flat in slot order; paged per core and tile in (fold, offset in block,
        partition) order of the resized blocks.
    active_mask : ndarray, optional
        ``[seq (key), batch, n_heads, seq (query)]``; causal unless given.
    pos_ids, start_pos_ids : ndarray, optional
        ``[batch, seq]``: cached length in column 0, and the first slot that each
        query keeps.
    active_blocks_table : ndarray, optional
        ``[batch, curr_sprior / block_len]`` page numbers.
    sink : ndarray, optional
        ``[n_heads, 1]`` float32.
    inv_freqs, rope_pos_ids : ndarray, optional
        ``[head_dim / 2, 1]`` float32; ``[batch, seq]``, pos_ids unless given.
    spec : Spec
    lnc : int
        Physical cores, 1 or 2.
    hardened : bool
        Differ from the published kernel where it returns NaN or reads stale slots.

    Returns
    -------
    TkgResult

    Raises
    ------
    ShapeError, DTypeError, ArgumentError, OutOfBoundsError, MachineError
        Before the first instruction.

    Examples
    --------
    >>> keys = np.zeros((1, 1, 4, 128), np.float32)
    >>> values = np.arange(128, dtype=np.float32).reshape(1, 1, 128, 1)
    >>> values = np.repeat(values, 4, axis=3)
    >>> config = TkgConfig(
    ...     curr_sprior=128, full_sprior=128, use_pos_id=True, qk_in_sb=True
    ... )
    >>> q, k = np.zeros((4, 1), np.float32), np.zeros((4, 1), np.float32)
    >>> v = np.full((1, 1, 1, 4), 3, np.float32)
    >>> pos = np.array([[3]])
    >>> attention_tkg(q, k, v, keys, values, config=config, pos_ids=pos).out.ravel()
    array([1.5, 1.5, 1.5, 1.5], dtype=float32)
    """
    x = TkgOperands(
        as_array("q", q),
        as_array("k_active", k_active),
        as_array("v_active", v_active),
        as_array("k_prior", k_prior),
        as_array("v_prior", v_prior),
        optional_array("mask", mask),
        optional_array("active_mask", active_mask),
        optional_array("pos_ids", pos_ids),
        optional_array("start_pos_ids", start_pos_ids),
        optional_array("active_blocks_table", active_blocks_table),
        optional_array("sink", sink),
        optional_array("inv_freqs", inv_freqs),
        optional_array("rope_pos_ids", rope_pos_ids),
    )
    sizes = check_call(x, config, lnc, spec, hardened)
    if sizes.paged:
        live = None
        if hardened:
            live = live_entries(sizes, x.pos_ids, x.start_pos_ids, x.mask)
        check_entries(x.table, x.k_prior.shape[0], sizes, live)
    return _run(x, sizes, config, spec, lnc, hardened)


def _run(
    x: TkgOperands,
    s: TkgSizes,
    config: TkgConfig,
    spec: Spec,
    lnc: int,
    hardened: bool,
) -> TkgResult:
    """Lay the arrays out, run the cores, copy the results out of the first one."""
    pair = CorePair(spec) if lnc == 2 else None
    cores = pair.cores if pair else (Machine(spec),)
    arrays = put_arrays(cores[0], x, s, config)

    def program(m: Machine) -> CoreRun:
        core = Core(m, s, config, hardened, arrays, x.q.dtype, x.k_prior.dtype)
        given = None
        if config.qk_in_sb:  # on chip from the start, so they leave no record
            given = m.sbuf.put(x.q), m.sbuf.put(x.k_active)
        return run_core(core, given)

    run = pair.run(program)[0] if pair else program(cores[0])
    out = run.result if config.out_in_sb else arrays.out
    k_out = None
    if config.fuse_rope:
        k_out = (run.k_active if config.k_out_in_sb else arrays.k_out).numpy()
    return TkgResult(out.numpy(), k_out, tuple(m.trace for m in cores), cores)
