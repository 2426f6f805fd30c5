"""Check what is claimed about the cache on the machine (chapter 21)."""

import inspect
from dataclasses import replace

import numpy as np

from flashlib.errors import FlashError, OutOfBoundsError
from flashlib.ledger.rows import Finding
from flashlib.machine.dtypes import BFLOAT16, FLOAT8
from flashlib.programs import TkgConfig, attention_cte, attention_tkg, gen_mask_tkg
from flashlib.programs.cache_call import cache_arguments, decode_cached
from flashlib.programs.tkg import keys, values
from flashlib.programs.tkg.sizes import resized_block_len

SLOTS, WIDTH = 2048, 128


def _draw(
    slots: int = SLOTS, width: int = WIDTH, dtype: type = BFLOAT16
) -> list[np.ndarray]:
    rng = np.random.default_rng(21)
    q = rng.standard_normal((1, 4, 1, width)) / width**0.5
    k, v = rng.standard_normal((2, 1, slots, width))
    return [x.astype(np.float32).astype(dtype) for x in (q, k, v)]


def _transposed_by(result) -> str:
    found = result.steps()
    names = ("dma_transpose", "nc_transpose")
    return next((op for op in names if ("k_load", op) in found), "nothing")


def flat_either_way() -> Finding:
    """Store the keys both ways, and put NaN into one more batch row."""
    rows = _draw()
    outs = [decode_cached(*rows, cache=c).out for c in ("rows", "columns")]
    args, options = cache_arguments(*rows)
    more = [np.concatenate([x, np.full_like(x, np.nan)]) for x in args[3:]]
    outs.append(attention_tkg(*args[:3], *more, **options).out)
    same = sum(np.array_equal(outs[0], x) for x in outs[1:])
    return Finding.of(
        same == 2,
        f"over {SLOTS:,} keys {same} of 2 variations give the same bits: keys stored "
        "as columns, and a second batch row full of NaN",
    )


def three_loads() -> Finding:
    """See who transposes keys of two widths and two types, flat and in pages."""
    found = {}
    for width, dtype in ((128, BFLOAT16), (64, BFLOAT16), (128, FLOAT8)):
        for cache in ("columns", "rows", "pages"):
            result = decode_cached(*_draw(2048, width, dtype), cache=cache)
            name = f"{np.dtype(dtype).name} {width} {cache}"
            found[name] = _transposed_by(result)
    gated = found["bfloat16 64 rows"] == "nc_transpose"
    listed = "; ".join(f"{name}: {op}" for name, op in found.items())
    return Finding.of(gated, f"who transposes the keys: {listed}")


def strided_keys_for_long_runs() -> Finding:
    """Compare the runs of V and the step of K with and without strides."""
    runs, unit = {}, {}
    for strided in (True, False):
        trace = decode_cached(*_draw(), strided=strided).traces[0]
        runs[strided] = max(r.run_bytes for r in trace if r.step == "v_load")
        products = [r for r in trace if r.step == "mm1" and r.op == "nc_matmul"]
        unit[strided] = products[0].read("stationary").unit_step
    holds = runs[True] == SLOTS // 128 * runs[False] and unit == {True: 0, False: 1}
    return Finding.of(
        holds,
        f"with strides a run of V is {runs[True]:,} bytes, without {runs[False]:,}; "
        "the columns of K that stand still are neighbors only without",
    )


def pages_ask_for_three_things() -> Finding:
    """Take each of the three away and count the refusals."""
    args, options = cache_arguments(*_draw(), cache="pages")
    ran = attention_tkg(*args, **options)
    gathers = ran.steps()["v_load", "dma_copy"]
    refused = 0
    for change in ({"qk_in_sb": False}, {"tp_k_prior": False}, {"strided_mm1": True}):
        config = replace(options["config"], **change)
        try:
            attention_tkg(*args, **{**options, "config": config})
        except FlashError:
            refused += 1
    return Finding.of(
        refused == 3,
        f"{SLOTS:,} keys in pages are gathered ({gathers} transfers of V with the new "
        f"row); without one of the three conditions {refused} of 3 calls are refused",
    )


def out_of_range_is_an_error() -> Finding:
    """Ask for a page that does not exist, and look for a mode that would skip it."""
    args, options = cache_arguments(*_draw(), cache="pages")
    table = options["active_blocks_table"].copy()
    table[0, 7] = args[3].shape[0]
    said = ""
    try:
        attention_tkg(*args, **{**options, "active_blocks_table": table})
    except OutOfBoundsError as error:
        said = str(error).partition(";")[0]
    skips = sum(inspect.getsource(m).count("oob_mode") for m in (keys, values))
    return Finding.of(
        bool(said) and skips == 0,
        f"{said}; the loading code names a mode for it {skips} times",
    )


def cut_until_128_fit() -> Finding:
    """Cut pages for six geometries and count the blocks."""
    calls = ((16, 2048, 1), (128, 4096, 1), (16, 256, 1), (16, 10240, 2))
    calls += ((16, 16640, 2), (32, 26624, 2))
    cut, whole, spared = [], 0, 0
    for page, slots, cores in calls:
        unit = resized_block_len(page, slots, cores, (slots // cores,))
        whole += slots // (cores * unit) % 128 == 0
        if unit < page:
            cut.append(f"{page} to {unit}")
            spared += slots // page >= cores * 128
    return Finding.of(
        whole == len(calls),
        f"in {whole} of {len(calls)} geometries the blocks fill whole folds of 128; "
        f"pages are cut from {', '.join(cut)}, {spared} times though there are 128 or "
        "more for each core, because the last fold would not be full; a length below "
        "8 forbids the transposing gather; the warning is a line that we do not print",
    )


def append_on_chip() -> Finding:
    """Count the bytes that go back to memory, without and with the rotation."""
    trace = decode_cached(*_draw()).traces[0]
    plain = {r.step for r in trace if r.dst == "hbm"}
    q, k, v = _draw()
    d = WIDTH
    config = TkgConfig(
        curr_sprior=SLOTS,
        full_sprior=SLOTS,
        tp_k_prior=True,
        use_pos_id=True,
        fuse_rope=True,
    )
    rotated = attention_tkg(
        q, k[:, None, -1:], v[:, None, -1:], k[:, None], v[:, None], config=config,
        pos_ids=np.array([[SLOTS - 1]]), rope_pos_ids=np.array([[5]]),
        inv_freqs=(1e4 ** (-np.arange(0, d, 2) / d)).astype(np.float32)[:, None],
    )  # fmt: skip
    stored = rotated.traces[0].bytes(dst="hbm") - trace.bytes(dst="hbm")
    return Finding.of(
        plain == {"store"} and stored == 2 * d,
        f"without the rotation only the step {', '.join(sorted(plain))} writes to "
        f"memory, {trace.bytes(dst='hbm'):,} bytes; with it {stored} bytes more, one "
        "key",
    )


def the_mask_hides_what_lies_between() -> Finding:
    """Count the bytes read from a longer bucket, and poison what lies beyond."""
    rows = _draw()
    short = decode_cached(*rows).traces[0]
    long = decode_cached(*rows, bucket=4 * SLOTS)
    read = long.traces[0].bytes(step="k_load")
    loaded = read > short.bytes(step="k_load")
    finite = bool(np.isfinite(long.out.astype(float)).all())
    return Finding.of(
        loaded,
        f"of a bucket of {4 * SLOTS:,} slots with {SLOTS:,} in use {read:,} bytes of "
        f"keys are read, {read // (2 * WIDTH):,} rows; the rest is full of NaN and the "
        f"output is {'finite' if finite else 'not'}: it is not masked, it is not "
        "loaded; the mask hides what lies between the valid and the used slots",
    )


def inconsistent_mask_order() -> Finding:
    """Compare the order in which a mask is written with the one that is read."""
    config = TkgConfig(curr_sprior=1024, full_sprior=1024)
    pos = np.array([[300]])
    written = gen_mask_tkg(pos, config=config, n_heads=1, layout="hbm").mask.ravel()
    wrong = int((written != (np.arange(1024) < 300)).sum())
    return Finding.of(
        wrong > 0,
        f"of 1,024 cells of a mask with 300 valid slots, {wrong} are wrong when the "
        "strided path reads what the generator wrote",
    )


def prefix_is_another_kernel() -> Finding:
    """Give a cached prefix to the prefill kernel itself."""
    rng = np.random.default_rng(5)
    q, k, v = rng.standard_normal((3, 1, 128, 32)).astype(np.float32)
    k_prior, v_prior = rng.standard_normal((2, 1, 512, 32)).astype(np.float32)
    own = attention_cte(
        q, k, v, scale=1.0, k_prior=k_prior, v_prior=v_prior, prior_used_len=512
    )
    both = [np.concatenate(x, 1) for x in ((k_prior, k), (v_prior, v))]
    whole = attention_cte(q, *both, scale=1.0, q_offset=512)
    off = float(np.abs(own.out - whole.out).max())
    return Finding.of(
        off > 0.02,
        "the prefill kernel of the public library takes a prefix of its own; in ours "
        f"512 cached keys and 128 new ones agree with 640 keys to {off:.0e}; whether a "
        "compiled one ships beside it cannot be tested here",
    )
