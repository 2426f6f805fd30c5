"""Attend from new tokens to a cache: the decode kernel whole (chapters 20, 21, 22)."""

from typing import NamedTuple

import numpy as np

from flashlib.machine.dtypes import BFLOAT16, FLOAT8
from flashlib.machine.machine import Machine
from flashlib.machine.pair import CorePair
from flashlib.machine.spec import NC_V3, Spec
from flashlib.machine.tile import Tile
from flashlib.machine.trace import Trace
from flashlib.programs.refusals import as_array, optional_array
from flashlib.programs.tkg.config import TkgConfig
from flashlib.programs.tkg.kernel import run_core
from flashlib.programs.tkg.operands import TkgOperands, check_call
from flashlib.programs.tkg.pages import check_entries, live_entries
from flashlib.programs.tkg.run import CoreRun
from flashlib.programs.tkg.sizes import TkgSizes


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
    machines = CorePair(spec) if lnc == 2 else Machine(spec)
    cores = machines.cores if lnc == 2 else (machines,)
    shared = _put(cores[0], x, sizes, config)
    runs = [_core_run(m, x, sizes, config, hardened, dict(shared)) for m in cores]
    if lnc == 2:
        machines.run(lambda m: run_core(runs[m.core]))
    else:
        run_core(runs[0])
    return _result(runs, cores, config)


def _core_run(
    m: Machine, x: TkgOperands, s: TkgSizes, config, hardened: bool, hbm: dict
) -> CoreRun:
    """Set one core up; what is on chip from the start leaves no record."""
    run = CoreRun(m, s, config, hardened, hbm, x.q.dtype, x.k_prior.dtype)
    if config.qk_in_sb:
        run.queries, run.k_active = m.sbuf.put(x.q), m.sbuf.put(x.k_active)
    return run


def _put(m: Machine, x: TkgOperands, s: TkgSizes, config: TkgConfig) -> dict[str, Tile]:
    """Lay the arrays of the call into the shared memory, by name."""
    hbm = {name: m.hbm.put(getattr(x, name)) for name in ("k_prior", "v_prior")}
    hbm["v_active"] = m.hbm.put(x.v_active)
    if not config.qk_in_sb:
        hbm |= {"q": m.hbm.put(x.q), "k_active": m.hbm.put(x.k_active)}
    if x.sink is not None:
        hbm["sink"] = m.hbm.put(x.sink)
    hbm |= _put_masking(m, x, s, config)
    if config.fuse_rope:
        rope = x.pos_ids if x.rope_pos_ids is None else x.rope_pos_ids
        hbm["rope_ids"] = m.hbm.put(rope.astype(np.float32))
        hbm["inv_freqs"] = m.hbm.put(x.inv_freqs)
        hbm["k_out"] = m.hbm.alloc((s.batch, 1, s.head_dim, s.seq), x.k_prior.dtype)
    if s.paged:
        hbm["table"] = m.hbm.put(x.table.astype(np.uint32))
        shape = (x.k_prior.shape[0] * s.factor, s.block_len * s.head_dim)
        for name in ("k", "v"):
            hbm[f"{name}_pages"] = hbm[f"{name}_prior"].reshape(shape)
    dtype = BFLOAT16 if x.q.dtype == FLOAT8 else x.q.dtype
    hbm["out"] = m.hbm.alloc((s.batch, s.n_heads, s.head_dim, s.seq), dtype)
    return hbm


def _put_masking(
    m: Machine, x: TkgOperands, s: TkgSizes, config: TkgConfig
) -> dict[str, Tile]:
    """A whole mask, or positions and the mask among the active tokens."""
    if not config.use_pos_id:
        return {"mask": m.hbm.put(_flags(x.mask))}
    active = x.active_mask
    if active is None:
        earlier = np.triu(np.ones((s.seq, s.seq), np.uint8))
        shape = (s.seq, s.batch, s.n_heads, s.seq)
        active = np.broadcast_to(earlier[:, None, None], shape)
    hbm = {"active_mask": m.hbm.put(_flags(active))}
    for name, ids in (("end_ids", x.pos_ids), ("start_ids", x.start_pos_ids)):
        if ids is not None:
            hbm[name] = m.hbm.put(ids.astype(np.float32))
    return hbm


def _flags(x: np.ndarray) -> np.ndarray:
    """The machine has no boolean type: one byte each."""
    return x.view(np.uint8) if x.dtype == bool else x


def _result(runs: list[CoreRun], cores: tuple, config: TkgConfig) -> TkgResult:
    """Copy the outputs out, of the first core where both have one."""
    run = runs[0]
    out = run.result if config.out_in_sb else run.hbm["out"]
    k_out = None
    if config.fuse_rope:
        k_out = run.k_active if config.k_out_in_sb else run.hbm["k_out"]
        k_out = k_out.numpy()
    traces = tuple(m.trace for m in cores)
    return TkgResult(out.numpy(), k_out, traces, tuple(cores))
