"""What the decode kernel and the mask generator refuse, before they start."""

import ml_dtypes
import numpy as np
import pytest
from programs.decode_problem import BF16, FP8, arguments, frequencies, problem

import flashlib
from flashlib.machine import NC_V2, NC_V3
from flashlib.programs import TkgConfig, attention_tkg, gen_mask_tkg
from flashlib.programs.tkg import checks
from flashlib.programs.tkg.sizes import TkgSizes

SHAPE, TYPE = flashlib.ShapeError, flashlib.DTypeError
VALUE = flashlib.ArgumentError
BASE = (2, 2, 3, 256, 256, 64)
F32 = np.float32


def base(sizes=BASE, change=None, drawn=None, **how):
    """Arguments of a legal call, some of them replaced."""
    args, more = arguments(problem(*sizes, **(drawn or {})), **how)
    names = ("q", "k_active", "v_active", "k_prior", "v_prior")
    call = dict(zip(names, args, strict=True)) | more
    return call | (change or {})


def refuse(call, error, words):
    q, ka, va, k, v = (
        call.pop(n) for n in ("q", "k_active", "v_active", "k_prior", "v_prior")
    )
    with pytest.raises(error, match=words) as caught:
        attention_tkg(q, ka, va, k, v, **call)
    message = str(caught.value)
    assert "\n" not in message and message.count("; ") >= 2 and "expected" in message


ROPE = {"rope": frequencies(64)}
PAGES = {"block_len": 16}
LONG_ROPE = {"fuse_rope": True, "curr_sprior": 2**17 + 128, "full_sprior": 2**18}
LONG = (2, 2, 3, 512, 512, 64)
CASES = {
    # sizes
    "batch-0": (
        lambda: base(change={"v_active": np.zeros((0, 1, 3, 64), F32)}),
        SHAPE,
        "batch has 0",
    ),
    "seq-0": (
        lambda: base(change={"v_active": np.zeros((2, 1, 0, 64), F32)}),
        SHAPE,
        "seq has 0",
    ),
    "heads-0": (
        lambda: base(change={"q": np.zeros((64, 0), F32)}),
        SHAPE,
        "n_heads has 0",
    ),
    "d-129": (lambda: base((1, 1, 1, 128, 128, 129)), SHAPE, "head_dim has 129"),
    "columns-513": (lambda: base((1, 171, 3, 128, 128, 4)), SHAPE, "513"),
    "seq-129": (lambda: base((1, 1, 129, 512, 512, 4)), SHAPE, "seq has 129"),
    "slots-127": (lambda: base((1, 1, 1, 127, 256, 4)), SHAPE, "curr_sprior has 127"),
    "slots-384": (lambda: base((1, 1, 1, 384, 384, 4), lnc=2), SHAPE, "256"),
    "slots-over": (lambda: base((1, 1, 1, 256, 128, 4)), SHAPE, "at most full_sprior"),
    "lnc-3": (lambda: base(change={"lnc": 3}), SHAPE, "lnc has 3"),
    "v2": (lambda: base(change={"spec": NC_V2}), flashlib.MachineError, "generation 3"),
    "bytes": (
        lambda: base((1, 64, 8, 8192, 8192, 4), enable_fa_s_prior_tiling=False),
        SHAPE,
        "16777216",
    ),
    "tile-100": (
        lambda: base((1, 1, 128, 384, 384, 4), fa_tile_s_prior=100),
        SHAPE,
        "fa_tile_s_prior has 100",
    ),
    "tile-0": (lambda: base(fa_tile_s_prior=0), SHAPE, "fa_tile_s_prior has 0"),
    "no-q": (lambda: base(qk_in_sb=False), SHAPE, "qk_in_sb"),
    # caches
    "k-turned": (
        lambda: base(change={"k_prior": np.zeros((3, 1, 256, 64), F32)}),
        SHAPE,
        "k_prior has shape",
    ),
    "v-short": (
        lambda: base(change={"v_prior": np.zeros((3, 1, 255, 64), F32)}),
        SHAPE,
        "v_prior has shape",
    ),
    "one-item": (
        lambda: base(change={"v_prior": np.zeros((1, 1, 256, 64), F32)}),
        SHAPE,
        "v_prior has shape",
    ),
    "two-kv-heads": (
        lambda: base(change={"v_active": np.zeros((2, 2, 3, 64), F32)}),
        SHAPE,
        "one key/value head",
    ),
    "q-shape": (
        lambda: base(change={"q": np.zeros((63, 12), F32)}),
        SHAPE,
        "q has shape",
    ),
    "k-active": (
        lambda: base(change={"k_active": np.zeros((64, 5), F32)}),
        SHAPE,
        "k_active has shape",
    ),
    # types
    "float64": (
        lambda: base(change={"q": np.zeros((64, 12))}),
        TYPE,
        "q has dtype float64",
    ),
    "mixed": (lambda: base(change={"q": np.zeros((64, 12), BF16)}), TYPE, "mix"),
    "one-fp8": (
        lambda: base(change={"k_prior": np.zeros((3, 1, 64, 256), FP8)}),
        TYPE,
        "share one type",
    ),
    "e5m2": (
        lambda: base(
            change={"k_prior": np.zeros((3, 1, 64, 256), ml_dtypes.float8_e5m2)}
        ),
        TYPE,
        "float8_e5m2",
    ),
    "fp8-q": (
        lambda: base(drawn={"dtype": FP8}, change={"q": np.zeros((64, 12), F32)}),
        TYPE,
        "q has dtype float32",
    ),
    "fp8-rope": (lambda: base(drawn={"dtype": FP8}, **ROPE), TYPE, "fuse_rope"),
    # rotation
    "rope-columns": (lambda: base((4, 11, 3, 256, 256, 64), **ROPE), SHAPE, "132"),
    "rope-d": (
        lambda: base((1, 1, 1, 128, 128, 32), rope=frequencies(32)),
        SHAPE,
        "head_dim has 32",
    ),
    "rope-batch": (
        lambda: base((2, 1, 1, 128, 128, 64), **ROPE, lnc=2),
        SHAPE,
        "shared by two cores",
    ),
    "rope-long": (
        lambda: base(**ROPE, change={"config": TkgConfig(**LONG_ROPE)}),
        SHAPE,
        "131072",
    ),
    "rope-freqs": (
        lambda: base(**ROPE, change={"inv_freqs": None}),
        SHAPE,
        "inv_freqs has None",
    ),
    "rope-freqs-shape": (
        lambda: base(**ROPE, change={"inv_freqs": np.zeros((64, 1), F32)}),
        SHAPE,
        "inv_freqs has shape",
    ),
    "rope-pos": (
        lambda: base(
            **ROPE,
            given_mask=np.ones((256, 2, 2, 3), bool),
            change={"rope_pos_ids": None},
        ),
        SHAPE,
        "rope_pos_ids and pos_ids",
    ),
    # masks and positions
    "no-pos": (lambda: base(change={"pos_ids": None}), SHAPE, "pos_ids has None"),
    "pos-shape": (
        lambda: base(change={"pos_ids": np.zeros((2, 1), int)}),
        SHAPE,
        "pos_ids has shape",
    ),
    "pos-type": (
        lambda: base(change={"pos_ids": np.zeros((2, 3))}),
        TYPE,
        "pos_ids has dtype float64",
    ),
    "both": (
        lambda: base(change={"mask": np.ones((256, 2, 2, 3), bool)}),
        SHAPE,
        "mask has an array",
    ),
    "neither": (
        lambda: base(given_mask=np.ones((256, 2, 2, 3)), change={"mask": None}),
        SHAPE,
        "mask has None",
    ),
    "mask-shape": (
        lambda: base(given_mask=np.ones((255, 2, 2, 3), bool)),
        SHAPE,
        "mask has shape",
    ),
    "mask-type": (
        lambda: base(given_mask=np.ones((256, 2, 2, 3), np.int64)),
        TYPE,
        "mask has dtype int64",
    ),
    "start-alone": (
        lambda: base(
            given_mask=np.ones((256, 2, 2, 3), bool),
            change={"start_pos_ids": np.zeros((2, 3), int)},
        ),
        SHAPE,
        "start_pos_ids has an array without use_pos_id",
    ),
    "active-alone": (
        lambda: base(
            given_mask=np.ones((256, 2, 2, 3), bool),
            change={"active_mask": np.ones((3, 2, 2, 3), bool)},
        ),
        SHAPE,
        "active_mask has an array without use_pos_id",
    ),
    "active-shape": (
        lambda: base(change={"active_mask": np.ones((3, 2, 3, 2), bool)}),
        SHAPE,
        "active_mask has shape",
    ),
    "sink-shape": (
        lambda: base(change={"sink": np.zeros((1, 2), F32)}),
        SHAPE,
        "sink has shape",
    ),
    "sink-type": (
        lambda: base(change={"sink": np.zeros((2, 1))}),
        TYPE,
        "sink has dtype float64",
    ),
    # pages
    "no-table": (
        lambda: base(LONG, **PAGES, change={"active_blocks_table": None}),
        SHAPE,
        "without active_blocks_table",
    ),
    "block-len": (
        lambda: base(
            LONG,
            **PAGES,
            change={
                "config": TkgConfig(
                    curr_sprior=512,
                    full_sprior=512,
                    tp_k_prior=True,
                    strided_mm1=False,
                    use_pos_id=True,
                    qk_in_sb=True,
                    block_len=32,
                )
            },
        ),
        SHAPE,
        "block_len has 32; expected 16",
    ),
    "table-shape": (
        lambda: base(
            LONG, **PAGES, change={"active_blocks_table": np.zeros((2, 31), int)}
        ),
        SHAPE,
        "active_blocks_table has shape",
    ),
    "table-type": (
        lambda: base(
            LONG, **PAGES, change={"active_blocks_table": np.zeros((2, 32), F32)}
        ),
        TYPE,
        "active_blocks_table has dtype float32",
    ),
    "pages-rank": (
        lambda: base(LONG, **PAGES, change={"k_prior": np.zeros((2, 1, 512, 64), F32)}),
        SHAPE,
        "k_prior has shape",
    ),
    "pages-differ": (
        lambda: base(LONG, **PAGES, change={"v_prior": np.zeros((9, 16, 64), F32)}),
        SHAPE,
        "v_prior has shape",
    ),
    "pages-12": (lambda: base((1, 1, 1, 1536, 1536, 4), block_len=48), SHAPE, "12"),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_refuses(case):
    make, error, words = case
    refuse(make(), error, words)


def filled(value, dtype=F32):
    """A mask of ones with one other value."""
    mask = np.ones((256, 2, 2, 3), dtype)
    mask[100, 1, 0, 2] = value
    return mask


def positions(value):
    pos = np.full((2, 3), 100, F32)
    pos[1, 2] = value
    return pos


def config(**fields):
    sizes = {"curr_sprior": 256, "full_sprior": 256}
    return TkgConfig(**(sizes | {"use_pos_id": True, "qk_in_sb": True} | fields))


JAGGED = [[1], [1, 2]]
ARRAYS = ("q", "k_active", "v_active", "k_prior", "v_prior", "pos_ids", "active_mask")
MORE_ARRAYS = ("start_pos_ids", "active_blocks_table", "sink", "inv_freqs")
ODD = {
    **{
        f"{name}-jagged": ({name: JAGGED}, SHAPE, f"{name} has .*one length")
        for name in (*ARRAYS, *MORE_ARRAYS, "mask", "rope_pos_ids")
    },
    "q-none": ({"q": None}, TYPE, "q has dtype object"),
    "lnc-float": ({"lnc": 2.0}, SHAPE, "lnc has 2.0"),
    "lnc-bool": ({"lnc": True}, SHAPE, "lnc has True"),
    "spec-none": ({"spec": None}, flashlib.MachineError, "spec has None"),
    "hardened": ({"hardened": "no"}, VALUE, "hardened has 'no'"),
    "sink-nan": ({"sink": F32([[0], [np.nan]])}, VALUE, "sink has .nan."),
    "sink-inf": ({"sink": F32([[np.inf], [0]])}, VALUE, "sink has .inf."),
    "pos-nan": ({"pos_ids": positions(np.nan)}, VALUE, "pos_ids has .nan."),
    "pos-inf": ({"pos_ids": positions(np.inf)}, VALUE, "pos_ids has .inf."),
    "pos-half": ({"pos_ids": positions(1.5)}, VALUE, "pos_ids has .1.5."),
    "start-nan": ({"start_pos_ids": positions(np.nan)}, VALUE, "start_pos_ids has"),
    "config-none": ({"config": None}, VALUE, "config has None"),
    "config-dict": ({"config": {"curr_sprior": 256}}, VALUE, "config has "),
    "slots-str": ({"config": config(curr_sprior="x")}, VALUE, "curr_sprior has 'x'"),
    "slots-float": (
        {"config": config(curr_sprior=128.0)},
        VALUE,
        "curr_sprior has 128",
    ),
    "full-bool": ({"config": config(full_sprior=True)}, VALUE, "full_sprior has True"),
    "tile-float": ({"config": config(fa_tile_s_prior=1e3)}, VALUE, "fa_tile_s_prior"),
    "block-none": ({"config": config(block_len=None)}, VALUE, "block_len has None"),
    "switch-str": ({"config": config(strided_mm1="no")}, VALUE, "strided_mm1 has 'no'"),
    "switch-int": ({"config": config(use_pos_id=1)}, VALUE, "use_pos_id has 1"),
}


@pytest.mark.parametrize("change, error, words", ODD.values(), ids=ODD)
def test_refuses_odd_values(change, error, words):
    refuse(base(change=change), error, words)


@pytest.mark.parametrize("value", [0.5, -1, np.nan, 2, np.inf, -np.inf], ids=str)
def test_a_mask_holds_zeros_and_ones(value):
    words = "mask has .*mask == 0 .*mask != 0"
    refuse(base(given_mask=filled(value)), VALUE, words)
    active = np.ones((3, 2, 2, 3), F32)
    active[0, 1, 1, 2] = value
    refuse(base(change={"active_mask": active}), VALUE, f"active_{words}")
    with pytest.raises(VALUE, match=f"active_{words}"):
        mask_call({"active_mask": active})


def test_flags_of_one_byte_hold_zeros_and_ones():
    refuse(base(given_mask=filled(255, np.uint8)), VALUE, "mask has .255.")


def test_values_of_numpy_are_values():
    plain, same = base(), base() | {"lnc": np.int64(1), "hardened": np.False_}
    names = ("tp_k_prior", "strided_mm1", "use_pos_id", "qk_in_sb")
    flags = {n: np.bool_(getattr(plain["config"], n)) for n in names}
    same["config"] = config(**flags, fa_tile_s_prior=np.int32(128))
    plain["config"] = config(
        **{n: bool(v) for n, v in flags.items()}, fa_tile_s_prior=128
    )
    np.testing.assert_array_equal(*(attention_tkg(**c).out for c in (plain, same)))


def test_an_infinitely_negative_sink_is_none():
    plain, none = base(), base(change={"sink": np.full((2, 1), -np.inf, F32)})
    np.testing.assert_array_equal(*(attention_tkg(**c).out for c in (plain, none)))


@pytest.mark.parametrize("name, value", [("strided_mm1", True), ("tp_k_prior", False)])
def test_pages_need_switches(name, value):
    call = base(LONG, **PAGES)
    flags = {f: getattr(call["config"], f) for f in call["config"].__dataclass_fields__}
    call["config"] = TkgConfig(**(flags | {name: value}))
    refuse(call, SHAPE, name)


def test_pages_need_q_on_chip():
    call = base(LONG, **PAGES, rope=frequencies(64))
    refuse(call, SHAPE, "qk_in_sb has False with pages")


def test_a_tile_that_does_not_fit_on_chip():
    s = TkgSizes(1, 2, 1, 128, 65536, 1, None, True, 0)
    with pytest.raises(SHAPE, match="bytes per partition"):
        checks.check_room(s, NC_V3, 4, 4, False)
    checks.check_room(
        TkgSizes(1, 2, 1, 128, 65536, 1, 8192, True, 0), NC_V3, 4, 4, True
    )


@pytest.mark.parametrize("page", [1, 8, 16, 24, 32, 48, 128])
@pytest.mark.parametrize("slots", [3072, 4608, 7680])
def test_resized_blocks_fill_every_tile(page, slots):
    """So neither a tile nor the active tokens can miss: nothing is left to refuse."""
    for limit in (None, 768, 1024, 2048):
        for lnc in (1, 2):
            s = TkgSizes(1, 2, 128, 4, slots, lnc, limit, False, page)
            assert page % s.block_len == 0
            assert all(t % (128 * s.block_len) == 0 for t in s.tiles)
            for size in s.tiles:
                cells = s.layout(size).tail(s.seq)
                assert sum(c.rows.stop - c.rows.start for c in cells) == s.seq


@pytest.mark.parametrize("bad", [-1, 64, 2**32 - 1, 2**32 + 3])
def test_pages_outside_the_cache(bad):
    call = base(LONG, **PAGES)
    table = call["active_blocks_table"].astype(np.int64)
    pages = call["k_prior"].shape[0]
    table[1, 5] = pages if bad == 64 else bad
    call["active_blocks_table"] = table
    refuse(
        call, flashlib.OutOfBoundsError, r"active_blocks_table\[1, 5\].*partition 20"
    )


def mask_call(change):
    config = change.pop("config", TkgConfig(curr_sprior=512, full_sprior=512))
    call = {"pos_ids": np.zeros((2, 3), int), "n_heads": 2, "spec": NC_V3} | change
    return gen_mask_tkg(call.pop("pos_ids"), config=config, **call)


@pytest.mark.parametrize(
    "change, error, words",
    [
        ({"pos_ids": np.zeros(3, int)}, SHAPE, "pos_ids has shape"),
        ({"pos_ids": np.zeros((0, 3), int)}, SHAPE, "batch has 0"),
        ({"pos_ids": np.zeros((2, 3))}, TYPE, "pos_ids has dtype float64"),
        ({"start_pos_ids": np.zeros((2, 1), int)}, SHAPE, "start_pos_ids"),
        ({"active_mask": np.ones((3, 2, 1, 3), bool)}, SHAPE, "active_mask"),
        ({"n_heads": 0}, SHAPE, "n_heads has 0"),
        ({"layout": "psum"}, VALUE, "layout has 'psum'"),
        ({"s_prior_offset": 64}, VALUE, "s_prior_offset has 64"),
        ({"s_prior_tile": 100}, VALUE, "tile 100"),
        ({"s_prior_offset": 256, "s_prior_tile": 512}, VALUE, "inside the 512"),
        ({"s_prior_tile": 128, "layout": "hbm"}, VALUE, "layout 'hbm'"),
        ({"dtype": np.int64}, TYPE, "int64"),
        ({"spec": NC_V2}, flashlib.MachineError, "generation 3"),
        ({"lnc": 0}, SHAPE, "lnc has 0"),
        ({"pos_ids": JAGGED}, SHAPE, "pos_ids has .*one length"),
        ({"start_pos_ids": JAGGED}, SHAPE, "start_pos_ids has .*one length"),
        ({"active_mask": JAGGED}, SHAPE, "active_mask has .*one length"),
        ({"pos_ids": np.full((2, 3), np.nan, F32)}, VALUE, "pos_ids has .nan."),
        ({"n_heads": 1.0}, VALUE, "n_heads has 1.0"),
        ({"n_heads": True}, VALUE, "n_heads has True"),
        ({"s_prior_tile": 128.0}, VALUE, "s_prior_tile has 128.0"),
        ({"s_prior_offset": 0.0}, VALUE, "s_prior_offset has 0.0"),
        ({"hardened": 1}, VALUE, "hardened has 1"),
        ({"lnc": 1.0}, SHAPE, "lnc has 1.0"),
        ({"spec": None}, flashlib.MachineError, "spec has None"),
        ({"config": None}, VALUE, "config has None"),
        (
            {"config": TkgConfig(curr_sprior=500, full_sprior=512)},
            SHAPE,
            "curr_sprior has 500",
        ),
    ],
    ids=lambda x: str(x)[:30],
)
def test_the_mask_generator_refuses(change, error, words):
    with pytest.raises(error, match=words):
        mask_call(dict(change))
