"""Every refusal, its class and its message; and that nothing runs before it."""

import re

import numpy as np
import pytest
from ways import Way

import flashlib
from flashlib import (
    ArgumentError,
    DTypeError,
    FlashError,
    MachineError,
    Refused,
    ShapeError,
    errors,
)
from flashlib.backends import Backend
from flashlib.backends.blas import BlasBackend
from flashlib.layout import merge_heads, repeat_kv, split_heads
from flashlib.masks import document_mask
from flashlib.online_softmax import walk
from flashlib.testing import make_qkv
from flashlib.traffic import intensity, roofline_seconds

X = np.zeros((3, 4, 8), np.float32)
K = np.zeros((5, 2, 8), np.float32)
SQUARE = np.ones((30, 2))
BAD_NUMBERS = (
    *(np.nan, np.inf, -np.inf, "1", None, 1j, True, 10**400, [1.0, 2.0], b"1", {}),
    *(np.True_, np.complex64(1), np.array(1j), np.array([1.0]), np.str_("1"), SQUARE),
    10**5000,
)


def call(q=X, k=K, v=K, **options):
    return flashlib.flash_attention(q, k, v, backend="numpy", **options)


# name: (arguments, class, message)
CASES = {
    "rank of q": (
        {"q": X[0]},
        ShapeError,
        "q has shape (4, 8); expected rank 3; its axes are [seq_q, n_heads, head_dim]",
    ),
    "rank of v": (
        {"v": K[None]},
        ShapeError,
        "v has shape (1, 5, 2, 8); expected rank 3; its axes are [seq_k, n_kv_heads, "
        "head_dim_v]",
    ),
    "ragged k": (
        {"k": [[[1.0]], [[1.0, 2.0]]]},
        ShapeError,
        "k has rows of different lengths; expected a rectangular array; an axis has "
        "one length",
    ),
    "lengths of k and v": (
        {"v": K[:4]},
        ShapeError,
        "k and v have 5 and 4 tokens; expected equal seq_k; every key has one value",
    ),
    "heads of k and v": (
        {"v": K[:, :1]},
        ShapeError,
        "k and v have 2 and 1 heads; expected equal n_kv_heads; every key has one "
        "value",
    ),
    "head_dim": (
        {"q": X[..., :7]},
        ShapeError,
        "q and k have head_dim 7 and 8; expected equal head_dim; a score is their dot "
        "product",
    ),
    "groups": (
        {"q": X[:, :3]},
        ShapeError,
        "q has 3 heads; expected a multiple of n_kv_heads = 2; every KV head serves a "
        "whole group of query heads",
    ),
    "no KV heads": (
        {"k": K[:, :0], "v": K[:, :0]},
        ShapeError,
        "q has 4 heads; expected a multiple of n_kv_heads = 0; every KV head serves a "
        "whole group of query heads",
    ),
    "integer q": (
        {"q": X.astype(int)},
        DTypeError,
        "q has dtype int64; expected float32, float64, float16 or bfloat16 in native "
        "byte order; convert with astype",
    ),
    "complex k": ({"k": K.astype(complex)}, DTypeError, "k has dtype complex128; "),
    "longdouble v": ({"v": K.astype(np.longdouble)}, DTypeError, "v has dtype "),
    "objects": ({"q": X.astype(object)}, DTypeError, "q has dtype object; "),
    "byte order": ({"q": X.astype(">f4")}, DTypeError, "q has dtype >f4; "),
    "mixed dtypes": (
        {"v": K.astype(np.float64)},
        DTypeError,
        "q, k, v have dtypes float32, float32, float64; expected one dtype for all "
        "three; convert with astype",
    ),
    "causal": (
        {"causal": "no"},
        ArgumentError,
        "causal has 'no'; expected True or False; later keys are hidden or they are "
        "not",
    ),
    "window 0": (
        {"window": 0},
        ArgumentError,
        "window has 0; expected an integer >= 1; an integer window counts the row's "
        "own key; None means no limit",
    ),
    "window float": ({"window": 2.0}, ArgumentError, "window has 2.0; expected an "),
    "window bool": ({"window": True}, ArgumentError, "window has True; expected an "),
    "window side": (
        {"window": (-1, 0)},
        ArgumentError,
        "window left has -1; expected an integer >= 0; a side counts the keys beyond "
        "the row's own key; None means no limit",
    ),
    "window right": ({"window": (0, -2)}, ArgumentError, "window right has -2; "),
    "window of three": (
        {"window": (1, 2, 3)},
        ArgumentError,
        "window has (1, 2, 3); expected (left, right), an integer or None; a band has "
        "two sides",
    ),
    "scale": (
        {"scale": np.inf},
        ArgumentError,
        "scale has inf; expected a finite number in float32; scores are computed in "
        "that type",
    ),
    "scale beyond float32": ({"scale": 1e39}, ArgumentError, "scale has 1e+39; "),
    "softcap 0": (
        {"softcap": 0.0},
        ArgumentError,
        "softcap has 0.0; expected a finite number > 0 in float32; scores are computed "
        "in that type",
    ),
    "softcap below float32": ({"softcap": 1e-60}, ArgumentError, "softcap has 1e-60; "),
    "softcap negative": ({"softcap": -1.0}, ArgumentError, "softcap has -1.0; "),
    "mask dtype": (
        {"mask": np.ones((3, 5), np.int32)},
        DTypeError,
        "mask has dtype int32; expected bool, True = attend; numbers that are added to "
        "the scores belong in bias; for a 0/1 mask pass mask.astype(bool)",
    ),
    "mask shape": (
        {"mask": np.ones((2, 5), bool)},
        ShapeError,
        "mask has shape (2, 5); expected one that broadcasts to [n_heads, seq_q, "
        "seq_k] = [4, 3, 5]; rank 2 is [seq_q, seq_k]",
    ),
    "mask rank": ({"mask": np.ones((1, 4, 3, 5), bool)}, ShapeError, "mask has shape"),
    "bias dtype": (
        {"bias": np.ones((3, 5), bool)},
        DTypeError,
        "bias has dtype bool; expected a float type, it is added to the scores; a bool "
        "array that says who attends belongs in mask",
    ),
    "bias of integers": ({"bias": np.ones((3, 5), int)}, DTypeError, "bias has dtype"),
    "bias shape": (
        {"bias": np.ones((4, 3, 6))},
        ShapeError,
        "bias has shape (4, 3, 6)",
    ),
    "sink shape": (
        {"sink": np.zeros(2)},
        ShapeError,
        "sink has shape (2,); expected (4,); there is one logit per query head",
    ),
    "sink dtype": ({"sink": np.zeros(4, int)}, DTypeError, "sink has dtype int64; "),
    "sink nan": (
        {"sink": np.array([0, 0, np.nan, 0])},
        ArgumentError,
        "sink has nan for head 2; expected a finite logit in float32; -inf stands for "
        "no sink",
    ),
    "sink inf": ({"sink": np.full(4, np.inf)}, ArgumentError, "sink has inf for head "),
    "sink beyond": ({"sink": np.full(4, 1e39)}, ArgumentError, "sink has 1e+39 for "),
    "sink below": ({"sink": np.full(4, -1e300)}, ArgumentError, "sink has -1e+300 f"),
    "tile array": ({"tile": SQUARE}, ArgumentError, "tile has array([[1., 1.], [1., 1"),
    "window array": ({"window": SQUARE}, ArgumentError, "window has array([[1., 1.], "),
    "window of arrays": (
        {"window": (SQUARE, 0)},
        ArgumentError,
        "window left has array([[1., 1.], [1., 1.], ",
    ),
    "window of three arrays": (
        {"window": [SQUARE] * 3},
        ArgumentError,
        "window has [array(",
    ),
    "scale array": ({"scale": SQUARE}, ArgumentError, "scale has array([[1., 1.], [1"),
    "causal array": ({"causal": SQUARE}, ArgumentError, "causal has array([[1., 1.], "),
    "huge tile": ({"tile": -(10**5000)}, ArgumentError, "tile has an object of type i"),
    "algorithm array": (
        {"algorithm": np.array(["flash", "flash"])},
        ArgumentError,
        "algorithm has array(['flash', 'flash'], ",
    ),
    "tile": (
        {"tile": 0},
        ArgumentError,
        "tile has 0; expected an integer >= 1; a tile holds at least one key",
    ),
    "tile float": ({"tile": 64.0}, ArgumentError, "tile has 64.0; expected an integer"),
    "algorithm": (
        {"algorithm": "fast"},
        ArgumentError,
        "algorithm has 'fast'; expected one of auto, flash, materialized; 'auto' "
        "leaves it to the backend",
    ),
    "unhashable algorithm": ({"algorithm": []}, ArgumentError, "algorithm has []; "),
}


@pytest.mark.parametrize("name", CASES)
def test_refusal(name):
    arguments, kind, message = CASES[name]
    with pytest.raises(FlashError) as caught:
        call(**arguments)
    assert caught.type is kind
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("name", CASES)
def test_message_form(name):
    arguments, kind, _ = CASES[name]
    with pytest.raises(kind) as caught:
        call(**arguments)
    text = str(caught.value)
    assert "\n" not in text and not text.endswith(".")
    assert re.match(r"^[a-z]\w*(, \w+)*( and \w+)?( left| right)? ha(s|ve) ", text)
    assert text.count("; ") >= 2 and "; expected " in text


SHARED = {name for name in CASES if not CASES[name][0].keys() & {"tile", "algorithm"}}


@pytest.mark.parametrize("name", sorted(SHARED))
def test_the_reference_refuses_alike(name):
    arguments, kind, message = CASES[name]
    full = {"q": X, "k": K, "v": K, **arguments}
    with pytest.raises(kind, match=re.escape(message)):
        flashlib.materialized_attention(
            full.pop("q"), full.pop("k"), full.pop("v"), **full
        )


class Silent(Backend):
    """A backend that must never be reached."""

    name = "silent"

    def prefill(self, *args, **options):
        raise AssertionError("a kernel ran before the validation was through")


@pytest.mark.parametrize("name", CASES)
def test_nothing_runs_before_a_refusal(name):
    arguments, kind, _ = CASES[name]
    full = {"q": X, "k": K, "v": K, **arguments}
    with pytest.raises(kind):
        flashlib.flash_attention(
            full.pop("q"), full.pop("k"), full.pop("v"), backend=Silent(), **full
        )


@pytest.mark.parametrize("name", ("scale", "softcap"))
@pytest.mark.parametrize("value", BAD_NUMBERS, ids=errors.shown)
def test_numbers_that_are_none(name, value):
    if value is None:
        assert call(**{name: None}).out.shape == X.shape
        return
    with pytest.raises(ArgumentError, match=f"^{name} has .*; expected a finite") as no:
        call(**{name: value})
    assert "\n" not in str(no.value) and len(str(no.value)) < 200


@pytest.mark.parametrize("value", (np.float16(2), np.int8(2), np.array(2.0), 2))
def test_numbers_of_any_type(value):
    assert np.array_equal(call(scale=value).lse, call(scale=2.0).lse)


def test_unknown_backend_lists_the_known_ones():
    for bad in ("fast", None, 3, SQUARE, np.array(["auto", "auto"]), [], {}):
        with pytest.raises(ArgumentError, match="expected one of auto, numpy, scalar"):
            flashlib.flash_attention(X, K, K, backend=bad)


def test_a_backend_without_its_package(monkeypatch):
    import flashlib.backends as backends

    monkeypatch.setitem(
        backends._ENTRIES, "absent", backends._Entry("no_such_module", "X", "nowhere")
    )
    assert "absent" not in flashlib.available_backends()
    with pytest.raises(ArgumentError, match="'absent'.*needs nowhere; install nowhere"):
        flashlib.get_backend("absent")


def test_an_explicit_algorithm_that_is_refused():
    if "scalar" not in flashlib.available_backends():
        pytest.skip("Numba is not installed")
    way = Way("scalar", None, np.float32)
    with pytest.raises(Refused, match="'materialized'; .*the scalar backend runs; its"):
        way(X, K, K, algorithm="materialized")


def test_oracle_dtype():
    for bad in (int, "nonsense", np.longdouble, ">f4"):
        with pytest.raises(DTypeError, match="^dtype has .*; expected float32, "):
            flashlib.materialized_attention(X, K, K, dtype=bad)


def test_layout_refusals():
    with pytest.raises(ShapeError, match=r"x has width 8; expected a multiple of n_h"):
        split_heads(X, 3)
    with pytest.raises(ShapeError, match=r"x has shape \(\); expected"):
        split_heads(np.float32(1), 1)
    for bad in (0, -1, 2.0, "2"):
        with pytest.raises(ArgumentError, match="^n_heads has .*; expected an integer"):
            split_heads(X, bad)
    with pytest.raises(ShapeError, match=r"x has shape \(3,\); expected"):
        merge_heads(X[:, 0, 0])
    with pytest.raises(ShapeError, match="side by side in memory.*never copies; pass"):
        merge_heads(X.swapaxes(0, 1))
    with pytest.raises(ArgumentError, match="^group has 0; expected an integer >= 1"):
        repeat_kv(K, 0)


def test_a_matrix_becomes_an_array():
    matrix = np.matrix(np.arange(12.0).reshape(2, 6))
    heads = split_heads(matrix, 3)
    assert heads.shape == (2, 3, 2) and np.shares_memory(heads, matrix)
    assert not isinstance(heads, np.matrix)
    assert merge_heads(matrix).shape == (12,)


def test_merge_refusals():
    out, lse = np.zeros((2, 3, 4), np.float32), np.zeros((2, 3), np.float32)
    good = flashlib.AttentionOutput(out, lse)
    with pytest.raises(ShapeError, match=r"^b has out .* and lse .*; expected out \["):
        flashlib.merge_states(good, (out, lse[:1]))
    with pytest.raises(ShapeError, match="^a and b have out .*; expected equal shapes"):
        flashlib.merge_states(good, (out[:1], lse[:1]))
    with pytest.raises(DTypeError, match="^a has out int64 and lse float32; expected"):
        flashlib.merge_states((out.astype(int), lse), good)
    with pytest.raises(DTypeError, match="^a and b have float32 and float64"):
        flashlib.merge_states(good, (out.astype(float), lse.astype(float)))
    for bad in (out, 3, None, "ab", (out,), (out, lse, lse), {0: out, 1: lse}):
        with pytest.raises(
            ArgumentError, match=r"^b has .*; expected the pair \(out, "
        ):
            flashlib.merge_states(good, bad)
    with pytest.raises(ShapeError, match="^a.out has rows of different lengths; exp"):
        flashlib.merge_states(([[1.0], [1.0, 2.0]], lse), good)


def test_helper_refusals():
    with pytest.raises(ArgumentError, match="^tile has 0; expected an integer >= 1"):
        list(walk(np.zeros(3), np.zeros((3, 1)), 0))
    with pytest.raises(ShapeError, match=r"^documents has shape \(2, 2\); expected"):
        document_mask(np.zeros((2, 2)))
    with pytest.raises(ArgumentError, match="^nbytes has 0; expected a number > 0"):
        intensity(1, 0)
    with pytest.raises(ArgumentError, match="^bandwidth has 0; expected a number > 0"):
        roofline_seconds(1, 1, 1, 0)


def test_the_tree():
    parents = {
        ShapeError: ValueError,
        ArgumentError: ValueError,
        DTypeError: TypeError,
        errors.CapacityError: ValueError,
        Refused: RuntimeError,
        MachineError: ValueError,
    }
    for kind, builtin in parents.items():
        assert issubclass(kind, FlashError) and issubclass(kind, builtin)
    for name in ("Placement", "Partition", "FreeSize", "Bank", "OutOfBounds"):
        assert issubclass(getattr(errors, f"{name}Error"), MachineError)
    assert issubclass(errors.UninitializedError, MachineError)
    for name in errors.__all__:
        assert getattr(flashlib, name) is getattr(errors, name)


@pytest.mark.parametrize("backend", flashlib.available_backends())
def test_a_caller_who_traps_floating_point_errors_gets_an_answer(backend):
    q, k, v = make_qkv(5, dtype=np.float16)
    v[:2], v[2:] = 60_000, 1e-7
    with np.errstate(all="raise"):
        result = flashlib.flash_attention(q, k, v, backend=backend)
    assert result.out.dtype == np.float16


@pytest.mark.parametrize("workers", [0, -1, 1.5, "two", True])
def test_a_number_of_workers_is_a_count(workers):
    with pytest.raises(flashlib.ArgumentError, match="workers has"):
        BlasBackend(workers)
