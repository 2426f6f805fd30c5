"""What a forward pass is made of: the published call counts, and every call."""

import inspect
import io
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

import flashlib
from flashlib.backends.tracing import Tracing
from flashlib.model import (
    GivenAttention,
    Operations,
    ProgressBar,
    Qwen3Config,
    RoundedOperations,
    Step,
    TracingOperations,
    generate,
    random_model,
)
from flashlib.model.rounding import round_int8

PROMPT = np.arange(17)


def narrow(layers=28):
    """Layers and heads of the 0.6B model, which decide the counts, and no width."""
    sizes = {"vocab_size": 64, "hidden_size": 16, "intermediate_size": 16}
    config = replace(Qwen3Config.qwen3_0_6b(), head_dim=4, **sizes)
    return random_model(config, layers=layers, share_layers=True)


def counted(model, algorithm, new_tokens, backend="numpy"):
    ops = TracingOperations(Operations(backend, algorithm))
    generate(model, PROMPT, max_new_tokens=new_tokens, backend=ops)
    return ops.counts


def test_the_published_counts():
    # The histogram of the text: 17 tokens in, two out, before and after.
    before = counted(narrow(), "materialized", 2)
    assert before["fill_strict_upper_tri"] == 448
    assert before["transpose_2d"] == 448
    assert before["softmax_rows"] == 450
    assert before["matmul"] == 1290
    assert before["flash_attention_prefill"] == 0
    after = counted(narrow(), "flash", 2)
    assert after["fill_strict_upper_tri"] == 0
    assert after["transpose_2d"] == 0
    assert after["softmax_rows"] == 2
    assert after["matmul"] == 394
    assert after["flash_attention_prefill"] == 28
    # Decode was fused before and after.
    assert before["fused_attention"] == after["fused_attention"] == 28


@pytest.mark.parametrize("layers", [1, 4])
@pytest.mark.parametrize("new_tokens", [1, 3])
def test_counts_of_other_sizes(layers, new_tokens):
    heads = 16 * layers
    passes = Counter(matmul=new_tokens * (7 * layers + 1), softmax_rows=new_tokens)
    before = counted(narrow(layers), "materialized", new_tokens)
    after = counted(narrow(layers), "auto", new_tokens)
    for name, per_head in (
        ("matmul", 2),
        ("softmax_rows", 1),
        ("transpose_2d", 1),
        ("scale", 1),
        ("fill_strict_upper_tri", 1),
        ("copy_2d_from_cols", 3),
        ("copy_2d_into_cols", 1),
    ):
        assert before[name] == passes[name] + per_head * heads
        assert after[name] == passes[name]
    assert after["flash_attention_prefill"] == layers
    assert after["fused_attention"] == (new_tokens - 1) * layers


def operations_of(kind):
    return {name for name, _ in inspect.getmembers(kind, inspect.isfunction)} - {
        "__init__"
    }


def test_the_tracer_passes_every_operation_on():
    listed = {name for name in operations_of(Operations) if not name.startswith("_")}
    assert listed <= TracingOperations.__dict__.keys()
    for name in listed:
        mine = inspect.signature(getattr(TracingOperations, name))
        assert mine.parameters.keys() == (
            inspect.signature(getattr(Operations, name)).parameters.keys()
        )


def test_a_traced_text_is_the_same_text():
    model = narrow(2)
    for algorithm in ("flash", "materialized"):
        plain = Operations("numpy", algorithm)
        want, _ = model.prefill(PROMPT, plain)
        traced = TracingOperations(plain)
        got, _ = model.prefill(PROMPT, traced)
        assert np.array_equal(got, want)
        assert traced.calls[-1].operation == "matmul"
        assert traced.calls[-1].nbytes == want.nbytes
        assert set(traced.seconds) == set(traced.counts)


def test_a_traced_backend_sees_attention_only():
    backend = Tracing(flashlib.get_backend("numpy"))
    ops = TracingOperations(Operations(backend))
    generate(narrow(), PROMPT, max_new_tokens=2, backend=ops)
    assert backend.counts["prefill"] == ops.counts["flash_attention_prefill"] == 28
    assert backend.counts["decode"] == ops.counts["fused_attention"] == 28
    assert "matmul" not in backend.counts


def test_a_backend_that_keeps_the_matrix_is_one_operation():
    # Its gate says no, and the model still makes one call per layer.
    class Keeps(flashlib.Backend):
        name = "keeps"

        def preferred(self, problem):
            return flashlib.Choice("materialized", "its products are fast")

    model = narrow(2)
    ops = TracingOperations(Operations(Keeps()))
    got, _ = model.prefill(PROMPT, ops)
    want, _ = model.prefill(PROMPT, "numpy", algorithm="materialized")
    assert ops.counts["flash_attention_prefill"] == 2
    assert np.abs(got - want).max() < 1e-5


def test_single_operations():
    ops = Operations("numpy")
    x = np.float32([[1, 2], [3, 4]])
    assert np.array_equal(ops.transpose_2d(x), [[1, 3], [2, 4]])
    assert ops.transpose_2d(x).flags.c_contiguous
    assert np.array_equal(ops.fill_strict_upper_tri(x, -np.inf), [[1, -np.inf], [3, 4]])
    assert np.array_equal(x, [[1, 2], [3, 4]])
    hot = np.float32([[1000, 1000, -np.inf]])
    assert np.array_equal(ops.softmax_rows(hot), [[0.5, 0.5, 0]])
    assert np.allclose(ops.rms_norm(x, np.float32([1, 10]), 0.0)[0, 1], 20 / 2.5**0.5)
    assert ops.scale(x, 0.5).dtype == np.float32
    far = np.float32([-1e4, 0, 1e4])
    assert np.array_equal(ops.swiglu(far, np.float32([1, 1, 1])), [0, 0, 1e4])


@pytest.mark.parametrize("rounding", ["bfloat16", "int8"])
def test_rounded_activations_disturb_more_than_float32_does(rounding):
    model = narrow(2)
    want, _ = model.astype(np.float64).prefill(PROMPT, "numpy")
    plain, _ = model.prefill(PROMPT, "numpy")
    rounded, _ = model.prefill(PROMPT, RoundedOperations(rounding, "numpy"))
    noise = np.abs(plain - want).max()
    assert 100 * noise < np.abs(rounded - want).max() < 1


def test_rounding_of_a_row_of_zeros():
    assert np.array_equal(round_int8(np.zeros((2, 3), "f4")), np.zeros((2, 3)))
    with pytest.raises(flashlib.ArgumentError, match="bfloat16, int8"):
        RoundedOperations("int4", "numpy")


# --- generate -----------------------------------------------------------------------


def test_greedy_is_the_argmax_of_whole_prefills():
    model = narrow(2)
    text = list(PROMPT)
    for _ in range(6):
        logits, _ = model.prefill(text, "numpy")
        text.append(int(logits[-1].argmax()))
    new = generate(model, PROMPT, max_new_tokens=6, backend="numpy")
    assert [*PROMPT, *new] == text


def test_every_token_is_streamed_with_its_margin():
    model, steps = narrow(2), []
    new = generate(
        model, PROMPT, max_new_tokens=4, backend="numpy", on_token=steps.append
    )
    assert [step.token for step in steps] == new
    assert [step.index for step in steps] == [0, 1, 2, 3]
    logits = model.prefill(PROMPT, "numpy", last_only=True)[0][0].astype(float)
    order = np.argsort(-logits)
    assert (steps[0].token, steps[0].runner_up) == tuple(order[:2])
    assert np.isclose(steps[0].margin, logits[order[0]] - logits[order[1]])
    p = np.exp(logits) / np.exp(logits).sum()
    assert np.isclose(steps[0].probability, p[order[0]])
    odds = np.log(steps[0].probability / steps[0].runner_up_probability)
    assert np.isclose(odds, steps[0].margin, atol=1e-4)


def test_a_stop_token_ends_a_text():
    model = narrow(2)
    free = generate(model, PROMPT, max_new_tokens=5, backend="numpy")
    model.config = replace(model.config, stop_tokens=(free[2],))
    stopped = generate(model, PROMPT, max_new_tokens=5, backend="numpy")
    assert stopped == free[: free.index(free[2])]


def test_how_many_tokens():
    model = narrow(1)
    assert generate(model, PROMPT, max_new_tokens=0) == []
    for wrong in (-1, 2.5):
        with pytest.raises(flashlib.ArgumentError, match="max_new_tokens"):
            generate(model, PROMPT, max_new_tokens=wrong)
    with pytest.raises(flashlib.ShapeError, match="token_ids"):
        generate(model, 3, backend="numpy")


def test_the_progress_bar_draws_one_line():
    stream = io.StringIO()
    bar = ProgressBar(2, stream)
    bar(Step(0, 1, 2, 0.5, 0.5, 0.0))
    bar(Step(1, 1, 2, 0.5, 0.5, 0.0))
    text = stream.getvalue()
    assert text.count("\n") == 1 and text.endswith("\n")
    assert "] 1/2 tokens" in text and "] 2/2 tokens" in text


def test_a_given_attention_runs_every_prompt_of_the_model():
    seen = []

    def attention(q, k, v, **options):
        seen.append((q.shape, options))
        return flashlib.flash_attention(q, k, v, **options, backend="numpy")

    model = narrow(2)
    ops = TracingOperations(GivenAttention(attention))
    rows, _ = model.prefill(PROMPT, ops)
    plain = TracingOperations(Operations("numpy", "flash"))
    want, _ = model.prefill(PROMPT, plain)
    assert np.array_equal(rows, want) and ops.counts == plain.counts
    assert seen == [((17, 16, 4), {"causal": True, "window": None})] * 2
