"""Logits against an independent implementation, whole and in pieces."""

from dataclasses import replace

import numpy as np
import pytest
from conftest import require
from model.sizes import TINY

import flashlib
from flashlib.model import (
    ModelCache,
    Operations,
    Qwen3Config,
    generate,
    random_model,
)
from flashlib.model.weights import Weights

BACKENDS = flashlib.available_backends()


def tokens(n, vocab=TINY.vocab_size, seed=0):
    return np.random.default_rng(seed).integers(0, vocab, n)


# --- the outside oracle -------------------------------------------------------------

# Heads, KV heads, width of a head, tied.
GEOMETRIES = [
    (4, 4, 8, True),
    (4, 2, 6, False),
    (6, 2, 10, True),
    (3, 1, 16, False),
    (8, 1, 4, True),
    (8, 2, 12, False),
]


def outside_model(n_heads, n_kv_heads, head_dim, tied, folder):
    """Return transformers' model and ours, with the same random weights."""
    torch, transformers = require("torch"), require("transformers")
    require("safetensors")
    from flashlib.model import load_model

    torch.manual_seed(n_heads + head_dim)
    config = transformers.Qwen3Config(
        vocab_size=61,
        hidden_size=28,
        intermediate_size=44,
        num_hidden_layers=3,
        num_attention_heads=n_heads,
        num_key_value_heads=n_kv_heads,
        head_dim=head_dim,
        tie_word_embeddings=tied,
        max_position_embeddings=256,
        initializer_range=0.3,
    )
    model = transformers.Qwen3ForCausalLM(config).eval()
    for parameter in model.parameters():
        if parameter.ndim == 1:  # norms start at 1, where a missing one hides
            parameter.data += 0.3 * torch.randn_like(parameter)
    model.save_pretrained(folder)
    return model, load_model(folder)


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=str)
def test_logits_equal_those_of_transformers(geometry, tmp_path):
    torch = require("torch")
    theirs, ours = outside_model(*geometry, tmp_path)
    for n in (1, 2, 7, 65, 131):
        text = tokens(n, 61, n)
        with torch.no_grad():
            want = theirs(torch.tensor(text)[None]).logits[0].numpy()
        got, cache = ours.prefill(text, "numpy")
        assert got.dtype == np.float32 and got.shape == want.shape
        assert np.abs(got - want).max() < 1e-4
        assert np.abs(want).max() > 1  # there was something to get wrong
        start = max(1, n // 3)
        _, cache = ours.prefill(text[:start], "numpy")
        for i in range(start, min(n, start + 12)):
            step = ours.decode(text[i], cache, "numpy")
            assert np.abs(step - want[i]).max() < 1e-4


@pytest.mark.parametrize("backend", BACKENDS)
def test_every_backend_against_transformers(backend, tmp_path):
    torch = require("torch")
    theirs, ours = outside_model(4, 2, 8, True, tmp_path)
    text = tokens(70, 61)
    with torch.no_grad():
        want = theirs(torch.tensor(text)[None]).logits[0].numpy()
    got, cache = ours.prefill(text[:69], backend)
    assert np.abs(got - want[:69]).max() < 1e-4
    last = ours.decode(text[69], cache, backend)
    assert np.abs(last - want[69]).max() < 1e-4


# --- without one --------------------------------------------------------------------


def close(a, b, bound=2e-5):
    return a.shape == b.shape and np.abs(a - b).max() < bound


@pytest.fixture(scope="module")
def model():
    return random_model(TINY, seed=1)


def test_the_two_ways_agree(model):
    text = tokens(100)
    flash, _ = model.prefill(text, "numpy", algorithm="flash")
    textbook, _ = model.prefill(text, "numpy", algorithm="materialized")
    assert close(flash, textbook)


def test_float32_is_near_float64(model):
    text = tokens(50)
    double = model.astype(np.float64)
    want, cache = double.prefill(text, "numpy")
    assert want.dtype == np.float64 and cache.layers[0].k.dtype == np.float64
    assert close(model.prefill(text, "numpy")[0], want)
    assert np.abs(double.decode(3, cache, "numpy")).max() > 0
    assert np.shares_memory(double.weights.head, double.weights.embedding)


CACHES = {
    "contiguous": lambda: ModelCache.contiguous(TINY, 40),
    "ring": lambda: ModelCache.ring(TINY, 40),
    "paged": lambda: ModelCache.paged(TINY, num_blocks=10, block_len=4),
}


@pytest.mark.parametrize("kind", CACHES)
@pytest.mark.parametrize("backend", BACKENDS)
def test_any_cache_gives_the_same_logits(model, kind, backend):
    text = tokens(40)
    want, _ = model.prefill(text, "numpy")
    cache = CACHES[kind]()
    first, returned = model.prefill(text[:37], backend, cache=cache)
    assert returned is cache and close(first, want[:37])
    for i in range(37, 40):
        assert close(model.decode(text[i], cache, backend), want[i])
    assert cache.length == 40


def test_a_text_in_two_pieces_is_the_whole_text(model):
    text = tokens(30)
    want, whole = model.prefill(text, "numpy")
    _, cache = model.prefill(text[:11], "numpy")
    rest, _ = model.prefill(text[11:], "numpy", cache=cache)
    assert close(rest, want[11:])
    for a, b in zip(cache.layers, whole.layers, strict=True):
        assert close(a.k[0, :30], b.k[0, :30]) and close(a.v[0, :30], b.v[0, :30])


def test_a_ring_is_a_window(model):
    # A prompt and single steps must forget alike.
    text = tokens(25)
    want, _ = model.prefill(text, "numpy", cache=ModelCache.ring(TINY, 8))
    whole, _ = model.prefill(text, "numpy")
    assert close(want[:8], whole[:8]) and not close(want, whole, 1e-3)
    cache = ModelCache.ring(TINY, 8)
    model.prefill(text[:1], "numpy", cache=cache)
    for i in range(1, 25):
        assert close(model.decode(text[i], cache, "numpy"), want[i])


def test_keys_go_into_the_cache_rotated(model):
    # One token, so q and k are easy: position 0 turns nothing, position 1 does.
    _, cache = model.prefill([5, 5], "numpy")
    first, second = cache.layers[0].k[0, :2]
    half = TINY.head_dim // 2
    assert not np.allclose(first, second)
    for pair in range(half):
        lengths = [np.hypot(x[:, pair], x[:, pair + half]) for x in (first, second)]
        assert np.allclose(*lengths, rtol=1e-5)
        turn = TINY.rope_theta ** (-pair / half)
        a, b = (x[0, pair] + 1j * x[0, pair + half] for x in (first, second))
        assert np.isclose(np.angle(b / a), turn if turn <= np.pi else turn - 2 * np.pi)
    assert np.allclose(*cache.layers[0].v[0, :2])


def test_a_later_token_changes_no_earlier_logits(model):
    a, b = tokens(20), tokens(20)
    b[15:] = (b[15:] + 1) % TINY.vocab_size
    one, two = (model.prefill(x, "numpy")[0] for x in (a, b))
    assert np.array_equal(one[:15], two[:15]) and not np.allclose(one[15], two[15])


def test_the_last_row_alone(model):
    text = tokens(9)
    whole, _ = model.prefill(text, "numpy")
    last, _ = model.prefill(text, "numpy", last_only=True)
    assert last.shape == (1, TINY.vocab_size) and close(last[0], whole[-1])


def test_every_layer_can_be_watched(model):
    seen = []
    model.prefill(tokens(4), "numpy", on_layer=lambda n, x: seen.append((n, x.shape)))
    assert seen == [(n, (4, TINY.hidden_size)) for n in range(TINY.layers)]


def test_shared_layers_are_one_memory():
    config = Qwen3Config.qwen3_0_6b()
    small = replace(config, vocab_size=8, hidden_size=16, intermediate_size=16)
    model = random_model(small, layers=28, share_layers=True)
    assert len(model.weights.layers) == 28
    assert len({id(layer.q) for layer in model.weights.layers}) == 1
    assert model.weights.layers[0].q.shape == (16, 2048)
    assert model.weights.layers[0].k.shape == (16, 1024)
    apart = random_model(replace(TINY, layers=3)).weights.layers
    assert len({id(layer.q) for layer in apart}) == 3


def test_the_published_geometry():
    config = Qwen3Config.qwen3_0_6b()
    assert (config.vocab_size, config.hidden_size) == (151_936, 1024)
    assert (config.n_heads, config.n_kv_heads, config.head_dim) == (16, 8, 128)
    assert config.tie_word_embeddings and config.rope_theta == 1e6


# --- what is refused ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        ([], flashlib.ShapeError, "seq >= 1"),
        (3, flashlib.ShapeError, "[seq]"),
        ([[1, 2]], flashlib.ShapeError, "(1, 2)"),
        ([1.0, 2.0], flashlib.DTypeError, "float64"),
        ([True], flashlib.DTypeError, "bool"),
        ([0, -1], flashlib.ArgumentError, "token_ids[1] has -1"),
        ([TINY.vocab_size], flashlib.ArgumentError, "token_ids[0]"),
        ([0] * (TINY.max_positions + 1), flashlib.ArgumentError, "longest text"),
    ],
)
def test_tokens_that_are_none(model, text, kind, words):
    cache = ModelCache.contiguous(TINY, 100)
    with pytest.raises(kind) as caught:
        model.prefill(text, "numpy", cache=cache)
    assert words in str(caught.value) and cache.length == 0


def test_a_text_of_exactly_the_longest_length():
    model = random_model(replace(TINY, max_positions=6), seed=1)
    text = tokens(6)
    whole, _ = model.prefill(text, "numpy")
    _, cache = model.prefill(text[:5], "numpy")
    assert close(model.decode(text[5], cache, "numpy"), whole[5])
    with pytest.raises(flashlib.ArgumentError, match="longest text"):
        model.decode(1, cache, "numpy")
    with pytest.raises(flashlib.ArgumentError, match="longest text"):
        model.prefill(tokens(7), "numpy")
    assert cache.length == 6


@pytest.mark.parametrize("before", [0, 2])
def test_what_would_be_too_long_is_refused_before_its_first_token(before):
    model = random_model(replace(TINY, max_positions=6), seed=1)
    cache, seen = ModelCache.contiguous(TINY, 20), []
    if before:
        model.prefill(tokens(before), "numpy", cache=cache)
    options = {"backend": "numpy", "cache": cache, "on_token": seen.append}
    given = tokens(4 - before)
    with pytest.raises(flashlib.ArgumentError, match="max_new_tokens has 3 after 4"):
        generate(model, given, max_new_tokens=3, **options)
    assert not seen and cache.length == before
    assert len(generate(model, given, max_new_tokens=2, **options)) == 2 == len(seen)


def test_too_many_tokens_are_no_question_of_how_many_follow():
    model = random_model(replace(TINY, max_positions=6), seed=1)
    with pytest.raises(flashlib.ArgumentError, match="token_ids has 7 tokens"):
        generate(model, tokens(7), max_new_tokens=3, backend="numpy")


@pytest.mark.parametrize("cache", [3, "x", [], flashlib.ContiguousCache(1, 8, 2, 8)])
def test_a_cache_that_is_none(model, cache):
    with pytest.raises(flashlib.ArgumentError, match="cache has .*; expected a Model"):
        model.prefill([1], "numpy", cache=cache)
    with pytest.raises(flashlib.ArgumentError, match="cache has .*; expected a Model"):
        model.decode(1, cache, "numpy")
    with pytest.raises(flashlib.ArgumentError, match="cache has .*; expected a Model"):
        generate(model, [1], cache=cache)


@pytest.mark.parametrize("dtype", ["nonsense", 3, np.int32, "float16", "f4, f8"])
def test_a_type_that_the_model_does_not_compute_in(model, dtype):
    with pytest.raises(flashlib.DTypeError, match="dtype has .*; expected float32 or"):
        model.astype(dtype)


def lengths(cache):
    return [int(layer.seqlens[0]) for layer in cache.layers]


def test_a_full_cache_stays_as_it_is(model):
    cache = ModelCache.contiguous(TINY, 6)
    model.prefill(tokens(6), "numpy", cache=cache)
    with pytest.raises(flashlib.CapacityError):
        model.decode(1, cache, "numpy")
    assert lengths(cache) == [6] * TINY.layers


def test_a_refused_algorithm_writes_nothing(model):
    class No(flashlib.Backend):
        name = "no"

        def refusal(self, problem, algorithm):
            return "it never does" if algorithm == "flash" else None

    cache = ModelCache.contiguous(TINY, 6)
    with pytest.raises(flashlib.Refused, match="it never does"):
        model.prefill(tokens(3), No(), algorithm="flash", cache=cache)
    with pytest.raises(flashlib.ArgumentError, match="algorithm"):
        model.prefill(tokens(3), "numpy", algorithm="fast", cache=cache)
    with pytest.raises(flashlib.ArgumentError, match="backend"):
        model.prefill(tokens(3), "fast", cache=cache)
    assert lengths(cache) == [0] * TINY.layers


def test_textbook_masks_know_no_window(model):
    cache = ModelCache.ring(TINY, 4)
    with pytest.raises(flashlib.Refused, match="triangle"):
        model.prefill(tokens(5), "numpy", algorithm="materialized", cache=cache)
    model.prefill(tokens(4), "numpy", algorithm="materialized", cache=cache)


def test_a_cache_of_another_model(model):
    other = replace(TINY, layers=1)
    for cache in (
        ModelCache.contiguous(other, 8),
        ModelCache.contiguous(replace(TINY, n_kv_heads=1), 8),
        ModelCache([flashlib.ContiguousCache(2, 8, 2, TINY.head_dim)] * TINY.layers),
    ):
        with pytest.raises(flashlib.ArgumentError, match="cache has"):
            model.prefill(tokens(3), "numpy", cache=cache)
    with pytest.raises(flashlib.DTypeError):
        cache = ModelCache.contiguous(TINY, 8, np.float64)
        model.prefill(tokens(3), "numpy", cache=cache)
    with pytest.raises(flashlib.ArgumentError, match="no caches"):
        ModelCache([])


def test_a_ring_takes_one_more_token_at_a_time(model):
    _, cache = model.prefill(tokens(3), "numpy", cache=ModelCache.ring(TINY, 8))
    with pytest.raises(flashlib.ArgumentError, match="use decode"):
        model.prefill(tokens(2), "numpy", cache=cache)


def test_decode_continues(model):
    with pytest.raises(flashlib.ArgumentError, match="start it with prefill"):
        model.decode(1, ModelCache.contiguous(TINY, 8))
    _, cache = model.prefill([1], "numpy")
    for wrong in (-1, 1.5, TINY.vocab_size):
        with pytest.raises(flashlib.ArgumentError):
            model.decode(wrong, cache)
    assert cache.length == 1


def test_operations_have_one_algorithm(model):
    ops = Operations("numpy", "flash")
    model.prefill([1], ops, algorithm="flash")
    with pytest.raises(flashlib.ArgumentError, match="algorithm"):
        model.prefill([1], ops, algorithm="materialized")


def test_sizes_have_to_fit():
    with pytest.raises(flashlib.DTypeError):
        random_model(TINY).astype(np.float16)
    with pytest.raises(flashlib.ArgumentError):
        random_model(TINY, layers=0)
    assert isinstance(random_model(TINY).weights, Weights)


@pytest.mark.parametrize(
    ("backend", "algorithm", "error"),
    [
        ("numpy", "bogus", flashlib.ArgumentError),
        ("blas", "flash", flashlib.Refused),
    ],
)
def test_an_algorithm_is_refused_in_the_middle_of_a_text_too(
    model, backend, algorithm, error
):
    _, cache = model.prefill(tokens(3), "numpy")
    before = [layer.k.copy() for layer in cache.layers]
    with pytest.raises(error):
        model.prefill(tokens(1), backend, algorithm=algorithm, cache=cache)
    assert cache.length == 3
    assert all(map(np.array_equal, before, (layer.k for layer in cache.layers)))


def test_layers_of_a_cache_have_one_type_and_one_length(model):
    sizes = (1, 10, TINY.n_kv_heads, TINY.head_dim)
    types = (np.float32, np.float32, np.float64)
    mixed = [flashlib.ContiguousCache(*sizes, dtype=dtype) for dtype in types]
    uneven = [flashlib.ContiguousCache(*sizes) for _ in range(3)]
    rows = np.zeros((1, 1, *sizes[2:]), np.float32)
    uneven[2].append(rows, rows)
    for layers, have in ((mixed, [0, 0, 0]), (uneven, [0, 0, 1])):
        with pytest.raises(flashlib.ArgumentError, match="another layer 2"):
            model.prefill(tokens(3), "numpy", cache=ModelCache(layers))
        assert [int(layer.seqlens[0]) for layer in layers] == have


def test_layers_of_a_cache_that_differ_are_refused_before_the_first(model):
    sizes = (TINY.n_kv_heads, TINY.head_dim)
    layers = [flashlib.ContiguousCache(1, room, *sizes) for room in (10, 10, 2)]
    with pytest.raises(flashlib.ArgumentError, match="another layer 2"):
        model.prefill(tokens(3), "numpy", cache=ModelCache(layers))
    assert [layer.seqlens.tolist() for layer in layers] == [[0], [0], [0]]
