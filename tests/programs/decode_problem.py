"""Random decode problems and what they should give, straight from the definition.

A problem holds plain arrays, ``k [batch, slots, d]`` in slot order; `call` packs them
into any layout of the kernel and runs it, `golden` computes in float64.
"""

from dataclasses import dataclass, replace

import ml_dtypes
import numpy as np

from flashlib.programs import TkgConfig, attention_tkg

BF16 = np.dtype(ml_dtypes.bfloat16)
FP8 = np.dtype(ml_dtypes.float8_e4m3)
TOLERANCE = {"float32": 1e-5, "bfloat16": 1e-2, "float8_e4m3": 3e-2}


@dataclass
class Problem:
    """One decode call in plain arrays; pos and start are ``[batch, seq]``."""

    q: np.ndarray
    k_active: np.ndarray
    v_active: np.ndarray
    k: np.ndarray
    v: np.ndarray
    pos: np.ndarray
    slots: int
    start: np.ndarray | None = None
    active: np.ndarray | None = None
    sink: np.ndarray | None = None

    @property
    def sizes(self):
        return self.q.shape

    def attends(self, clamp_end=False):
        """The mask in slot order, ``[slots, batch, heads, seq]``, slot by slot."""
        batch, heads, seq, _ = self.q.shape
        out = np.zeros((self.slots, batch, heads, seq), bool)
        slot = np.arange(self.slots)
        for b in range(batch):
            for s in range(seq):
                if self.start is None:
                    row = slot < self.pos[b, 0]
                else:
                    first, end = self.start[b, s], self.pos[b, s]
                    stop = self.pos[b, 0] if clamp_end else end
                    inside = (slot >= first) & (slot < stop)
                    around = (slot >= first) | (slot < stop)
                    row = around if first > end else inside
                out[:, b, :, s] = row[:, None]
        active = self.active
        if active is None:
            causal = np.arange(seq)[:, None] <= np.arange(seq)
            active = np.broadcast_to(causal[:, None, None], (seq, batch, heads, seq))
        out[self.slots - seq :] = active
        return out


def problem(
    batch, heads, seq, slots, full, d, *, dtype=np.float32, seed=0, window=None, **more
):
    """Draw a problem whose scores have a spread of about 1."""
    rng = np.random.default_rng(seed)

    def draw(*shape, scale=1.0):
        return (scale * rng.standard_normal(shape)).astype(np.float32).astype(dtype)

    sink = more.pop("sink", False)
    pos = more.pop("pos", None)
    paged = more.pop("paged", False)
    if pos is None:
        pos = rng.integers(slots // 2, slots - seq + 1, batch)
    pos = np.asarray(pos)[:, None] + np.arange(seq)
    start = None
    if window is not None:
        first = pos - window + 1
        start = np.maximum(first, 0) if paged else first % slots
    return Problem(
        q=draw(batch, heads, seq, d, scale=d**-0.5),
        k_active=draw(batch, seq, d),
        v_active=draw(batch, seq, d),
        k=draw(batch + 1, full, d),
        v=draw(batch + 1, full, d),
        pos=pos,
        slots=slots,
        start=start,
        sink=rng.standard_normal((heads, 1)).astype(np.float32) if sink else None,
        **more,
    )


def rotate(x, pos, inv_freqs):
    """Rotate ``[..., seq, d]`` by positions, half-split, in float64."""
    angle = pos[..., None] * inv_freqs[:, 0].astype(np.float64)
    cos, sin = np.cos(angle), np.sin(angle)
    a, b = np.split(x.astype(np.float64), 2, axis=-1)
    return np.concatenate([a * cos - b * sin, b * cos + a * sin], -1)


def golden(p, inv_freqs=None, attends=None):
    """``[batch, heads, d, seq]`` in float64; NaN where nothing is attended."""
    batch, _, seq, d = p.q.shape
    q, k_active = p.q.astype(np.float64), p.k_active.astype(np.float64)
    if inv_freqs is not None:
        q = rotate(q, p.pos[:, None], inv_freqs) / np.sqrt(d)
        k_active = rotate(k_active, p.pos, inv_freqs)
    k, v = (x[:batch, : p.slots].astype(np.float64) for x in (p.k, p.v))
    k[:, p.slots - seq :], v[:, p.slots - seq :] = k_active, p.v_active
    mask = (p.attends() if attends is None else attends).transpose(1, 2, 3, 0)
    s = np.where(mask, np.einsum("bhsd,bld->bhsl", q, k), -np.inf)
    top = s.max(-1, keepdims=True)
    if p.sink is not None:
        top = np.maximum(top, p.sink[None, :, :, None].astype(np.float64))
    with np.errstate(invalid="ignore"):
        weights = np.exp(s - top)
        total = weights.sum(-1, keepdims=True)
        if p.sink is not None:
            total = total + np.exp(p.sink[None, :, :, None] - top)
        return np.einsum("bhsl,bld->bhds", weights / total, v)


def pages_of(p, block_len, seed=0, spare=3):
    """Scatter the cache over pages; return k and v pages and the table."""
    batch, columns = p.q.shape[0], p.slots // block_len
    rng = np.random.default_rng(seed)
    order = rng.permutation(batch * columns + spare)
    table = order[: batch * columns].reshape(batch, columns).astype(np.uint32)
    out = []
    for x in (p.k, p.v):
        pages = np.zeros((len(order), block_len, x.shape[-1]), x.dtype)
        cut = x[:batch, : p.slots].reshape(batch, columns, block_len, -1)
        pages[table] = cut
        out.append(pages)
    return (*out, table)


def arguments(p, *, rope=None, block_len=0, given_mask=None, **flags):
    """Positional and keyword arguments of attention_tkg for a problem."""
    batch, heads, seq, d = p.q.shape
    lnc = flags.pop("lnc", 1)
    hardened = flags.pop("hardened", False)
    in_sb = flags.setdefault("qk_in_sb", rope is None)
    if block_len:
        flags |= {"tp_k_prior": True, "strided_mm1": False}
    config = TkgConfig(
        curr_sprior=p.slots,
        full_sprior=p.k.shape[1],
        use_pos_id=given_mask is None,
        fuse_rope=rope is not None,
        block_len=block_len,
        **flags,
    )
    q, k_active = p.q, p.k_active[:, None]
    if in_sb:
        q = p.q.transpose(3, 0, 1, 2).reshape(d, -1)
        k_active = p.k_active.transpose(2, 0, 1).reshape(d, -1)
    more = {}
    if block_len:
        k, v, more["active_blocks_table"] = pages_of(p, block_len)
    else:
        k, v = p.k[:, None], p.v[:, None]
        k = k if config.tp_k_prior else k.transpose(0, 1, 3, 2)
    if given_mask is None:
        more |= {"start_pos_ids": p.start, "active_mask": p.active}
        more |= {"pos_ids": p.pos}
    else:
        more["mask"] = given_mask
        more["rope_pos_ids"] = None if rope is None else p.pos
    args = (q, k_active, p.v_active[:, None], np.ascontiguousarray(k), v)
    more |= {"config": config, "sink": p.sink, "inv_freqs": rope}
    return args, more | {"lnc": lnc, "hardened": hardened}


def call(p, **how):
    """Run attention_tkg on a problem."""
    args, more = arguments(p, **how)
    return attention_tkg(*args, **more)


def output(p, result):
    """The output as ``[batch, heads, d, seq]`` float64, wherever it was left."""
    batch, heads, seq, d = p.q.shape
    out = result.out.astype(np.float64)
    if out.ndim == 2:
        out = out.reshape(d, batch, heads, seq).transpose(1, 2, 0, 3)
    return out


def difference(p, result, want):
    """Largest difference relative to the largest value."""
    return np.abs(output(p, result) - want).max() / np.abs(want).max()


def frequencies(d, base=10000.0):
    """The usual inverse frequencies, ``[d / 2, 1]`` float32."""
    return (base ** (-np.arange(0, d, 2) / d)).astype(np.float32)[:, None]


def changed(p, **fields):
    """A copy of a problem with some fields replaced."""
    return replace(p, **fields)
