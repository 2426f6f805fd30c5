"""Check what is claimed about the masks of decode and prefill (chapter 18)."""

import inspect
import re

import numpy as np

from flashlib import programs
from flashlib.ledger.rows import Finding
from flashlib.machine.trace import Record
from flashlib.programs import TkgConfig, attention_cte, gen_mask_tkg
from flashlib.programs.cache_call import decode_slots
from flashlib.programs.cte import masking
from flashlib.reference import materialized_attention

SLOTS, POS, SEQ = 256, 100, 3
WIDTH = 8


def _inputs(seq: int = SEQ, n_heads: int = 2, rows: int = SLOTS) -> list[np.ndarray]:
    rng = np.random.default_rng(18)
    shapes = (seq, n_heads, WIDTH), (rows, 1, WIDTH), (rows, 1, WIDTH)
    return [rng.standard_normal(shape).astype(np.float32) for shape in shapes]


def _mask(active: np.ndarray | None = None, **more: object) -> np.ndarray:
    """Return the mask ``[slots, queries]`` of one head, in slot order."""
    config = TkgConfig(curr_sprior=SLOTS, full_sprior=SLOTS)
    if active is not None:
        active = active.T[:, None, None]
    pos = POS + np.arange(SEQ)[None]
    made = gen_mask_tkg(pos, config=config, n_heads=1, active_mask=active, **more)
    return made.mask[:, :, 0, 0].reshape(SLOTS, SEQ)


def _causal() -> np.ndarray:
    return np.tri(SEQ, dtype=bool)


def _steps(trace, *ops: str) -> list[Record]:
    return [record for record in trace if record.op in ops]


def _lines(source: str) -> int:
    return sum(bool(re.search("causal", line)) for line in source.splitlines())


def _count_in_ours() -> str:
    decode = _lines(inspect.getsource(programs.tkg.scores))
    decode += _lines(inspect.getsource(programs.tkg.kernel))
    return (
        f"the published files are no part of this book; in its own programs the loop "
        f"and the scores of decode say causal on {decode} lines, and the masking of "
        f"prefill on {_lines(inspect.getsource(masking))}"
    )


def word_count() -> Finding:
    """Say that the count is quoted, and count the own programs."""
    return Finding("not testable here", _count_in_ours())


def lines_or_occurrences() -> Finding:
    """The same for the question what was counted."""
    return Finding("not testable here", _count_in_ours())


def three_masks() -> Finding:
    """Hold generated masks against the three sets they should be."""
    slot = np.arange(SLOTS)[:, None]
    start = (POS + np.arange(SEQ) - 9)[None]
    tail = _causal().T
    valid, banded = _mask(), _mask(start_pos_ids=start)
    active = _mask(_causal())
    right = [
        np.array_equal(valid, slot < np.full(SEQ, POS)),
        np.array_equal(banded, (slot >= start) & (slot < POS + np.arange(SEQ))),
        np.array_equal(active[:-SEQ], valid[:-SEQ]),
        np.array_equal(active[-SEQ:], tail),
    ]
    return Finding.of(
        all(right),
        f"of {SLOTS} slots and {SEQ} queries, {int(valid.sum())} cells pass for "
        f"validity, {int(banded.sum())} for a window of 10, and the last {SEQ} slots "
        f"hold {int(active[-SEQ:].sum())} more for the active tokens",
    )


def zero_and_one() -> Finding:
    """Look what a mask holds, and which program writes the masking value."""
    values = np.unique(_mask(_causal())).tolist()
    decode = decode_slots(*_inputs(), pos=POS).traces[0]
    q, k, v = (x.transpose(1, 0, 2) for x in _inputs(256, 1, 256))
    prefill = attention_cte(q, k, v, scale=1.0).traces[0]
    copies = [len(_steps(t, "tensor_copy_predicated")) for t in (decode, prefill)]
    selects = [
        len(_steps(t, "affine_select", "range_select")) for t in (decode, prefill)
    ]
    holds = values == [0, 1] and copies[0] > 0 == copies[1] and selects[0] == 0
    return Finding.of(
        holds and selects[1] > 0,
        f"the mask of decode holds {values}; decode runs {copies[0]} predicated copies "
        f"and {selects[0]} selections by index, prefill {copies[1]} and {selects[1]}",
    )


def predicated_copy() -> Finding:
    """Look at the operands of the one instruction that reads the mask."""
    trace = decode_slots(*_inputs(), pos=POS).traces[0]
    copies = _steps(trace, "tensor_copy_predicated")
    ways = {(r.src, r.dst, r.read("predicate").dtype.name) for r in copies}
    return Finding.of(
        ways == {("psum", "sbuf", "uint8")},
        f"{len(copies)} predicated copy for {SLOTS} slots, from PSUM to SBUF under a "
        "mask of uint8",
    )


def clamp_of_a_tile() -> Finding:
    """Hide the first of two tiles, and compare with the oracle."""
    q, k, v = _inputs(1)
    mask = np.zeros((1, SLOTS), bool)
    mask[:, 128:] = True
    got = decode_slots(q, k, v, mask=mask[None], tile=128).out
    want = materialized_attention(q, k, v, mask=mask, dtype=np.float64).out
    error = np.abs(got - want).max()
    return Finding.of(
        bool(error < 1e-5),
        f"with the first tile of 2 hidden the output is off by {error:.0e}",
    )


def clamp_of_a_row() -> Finding:
    """Hide everything from one head of two."""
    mask = np.zeros((2, 1, SLOTS), bool)
    mask[1] = True
    found = {}
    for hardened in (False, True):
        out = decode_slots(*_inputs(1), mask=mask, hardened=hardened).out
        found[hardened] = out[0, 0]
    lost, zero = int(np.isnan(found[False]).sum()), int((found[True] == 0).sum())
    return Finding.of(
        lost == 0,
        f"of {WIDTH} components of a row without keys {lost} are NaN, 0 times the "
        f"reciprocal of 0; with the sum clamped as well, {zero} are 0",
    )


def leading_tiles() -> Finding:
    """Hide one, two and three tiles in front of the last one."""
    lost = {}
    for tiles in (1, 2, 3):
        rows = 128 * (tiles + 1)
        mask = np.zeros((1, 1, rows), bool)
        mask[..., 128 * tiles :] = True
        for hardened in (False, True):
            call = {"mask": mask, "tile": 128, "hardened": hardened}
            out = decode_slots(*_inputs(1, 1, rows), **call).out
            lost[tiles, hardened] = int(np.isnan(out).any())
    faithful = [lost[tiles, False] for tiles in (1, 2, 3)]
    return Finding.of(
        not any(faithful),
        f"rows that are NaN after 1, 2 and 3 hidden tiles: {faithful} of 1 each; with "
        f"the running maximum clamped {[lost[t, True] for t in (1, 2, 3)]}; in this "
        "simulation, not tried on hardware",
    )


def one_comparison() -> Finding:
    """Put garbage behind the length, where neither cut may look."""
    plain = _mask()
    slot = np.arange(SLOTS)[:, None]
    padding = int(plain[slot[:, 0] >= POS].sum())
    q, k, v = _inputs()
    loud = k.copy()
    loud[POS : SLOTS - SEQ] = 1e30
    same = np.array_equal(
        decode_slots(q, k, v, pos=POS).out, decode_slots(q, loud, v, pos=POS).out
    )
    return Finding.of(
        padding == 0 and same,
        f"of {SLOTS - POS} slots from {POS} on {padding} pass the one comparison, and "
        "keys of 1e30 there change no bit; active tokens are masked apart",
    )


def comparison_and_active_slots() -> Finding:
    """Ask the comparison about the slots of the active tokens."""
    by_slot = _mask()[-SEQ:]
    needed = _causal().T
    wrong = int((by_slot.astype(bool) != needed).sum())
    return Finding.of(
        wrong == 0,
        f"the active tokens lie in slots {SLOTS - SEQ} to {SLOTS - 1}, not from {POS} "
        f"on, and the comparison hides all of them: {wrong} of {SEQ * SEQ} cells are "
        "wrong until a mask of their own is copied over them",
    )


def triangle_from_the_caller() -> Finding:
    """Hand in a triangle, then a tree of three tokens, and find both in the mask."""
    tree = np.array([[1, 0, 0], [1, 1, 0], [1, 0, 1]], bool)
    kept = [np.array_equal(_mask(a)[-SEQ:], a.T) for a in (_causal(), tree)]
    return Finding.of(
        all(kept),
        f"a given triangle of {int(_causal().sum())} cells is copied into the last "
        f"{SEQ} slots; so is a tree of {int(tree.sum())}, for the program only copies",
    )


def ramp_and_float32() -> Finding:
    """Follow slot numbers from the ramp to the comparison."""
    config = TkgConfig(curr_sprior=SLOTS, full_sprior=SLOTS)
    pos = np.full((1, SEQ), POS)
    trace = gen_mask_tkg(pos, config=config, n_heads=2).traces[0]
    (ramp,) = _steps(trace, "iota")
    (compared,) = _steps(trace, "tensor_scalar")
    (operand,) = [r for r in compared.reads if r.name == "data"]
    width = int(np.prod(operand.shape[1:])) // (SLOTS // 128)
    types = {ramp.writes[0].dtype.name, operand.dtype.name}
    return Finding.of(
        types == {"float32"} and width == 2 * SEQ,
        f"1 ramp of {ramp.writes[0].shape}, repeated {width} times for 2 heads and "
        f"{SEQ} queries, then 1 comparison in {' and '.join(sorted(types))}",
    )


def infinity_once() -> Finding:
    """Count how often the scores are filled, and look at the types of the mask."""
    q, k, v = _inputs(1, 1, 384)
    trace = decode_slots(q, k, v, tile=128).traces[0]
    fills = [r for r in _steps(trace, "memset") if r.step == "mm1"]
    flags = _steps(trace, "tensor_copy_predicated")[0].read("predicate").dtype.name
    config = TkgConfig(curr_sprior=SLOTS, full_sprior=SLOTS)
    pos = np.full((1, 1), POS)
    made = gen_mask_tkg(pos, config=config, n_heads=1, layout="hbm").mask.dtype.name
    return Finding.of(
        len(fills) == 1 and (made, flags) == ("float32", "uint8"),
        f"{made} in HBM and {flags} on chip, as said; but 3 tiles fill the scores "
        f"{len(fills)} times, for a hidden cell would keep what the tile before left",
    )


def built_or_loaded() -> Finding:
    """Run with positions, then with the same mask ready made."""
    q, k, v = _inputs()
    mask = np.zeros((2, SEQ, SLOTS), bool)
    mask[..., :POS] = True
    mask[..., -SEQ:] = _causal()
    built = decode_slots(q, k, v, pos=POS)
    loaded = decode_slots(q, k, v, mask=mask)
    iotas = [len(_steps(r.traces[0], "iota")) for r in (built, loaded)]
    return Finding.of(
        np.array_equal(built.out, loaded.out) and iotas == [1, 0],
        f"the two outputs agree in every bit; the first run writes slot numbers "
        f"{iotas[0]} time, the second {iotas[1]} times",
    )


def select_not_add() -> Finding:
    """Hide a key of 1e30 and of NaN from prefill: an addition would show it."""
    q, k, v = (x.transpose(1, 0, 2) for x in _inputs(256, 1, 256))
    bound = {"bound_min": np.full((256, 1), 9), "bound_max": np.full((256, 1), 256)}
    call = {"scale": 1.0, "causal": False, **bound}
    plain = attention_cte(q, k, v, **call)
    changed = []
    for garbage in (1e30, np.nan):
        loud = k.copy()
        loud[:, :9] = garbage
        changed.append(int((attention_cte(q, loud, v, **call).out != plain.out).sum()))
    ops = plain.traces[0].histogram()
    return Finding.of(
        changed == [0, 0] and ops["range_select"] > 0,
        f"{ops['range_select']} selections by column; hidden keys of 1e30 and of NaN "
        f"change {changed[0]} and {changed[1]} of {plain.out.size:,} outputs",
    )
