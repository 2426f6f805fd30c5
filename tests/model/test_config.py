"""A configuration is read as it stands, or one sentence says what is wrong."""

import pytest
from model.checkpoints import FIELDS

import flashlib
from flashlib.model import Qwen3Config


def test_what_a_file_may_leave_out():
    assert "rms_norm_eps" not in FIELDS
    fields = {k: v for k, v in FIELDS.items() if k != "tie_word_embeddings"}
    config = Qwen3Config.from_json(fields)
    assert config.rms_norm_eps == 1e-6
    assert config.tie_word_embeddings is False
    assert config.stop_tokens == ()


def test_what_a_caller_may_leave_out():
    config = Qwen3Config.qwen3_0_6b()
    assert config.rms_norm_eps == 1e-6 and config.rope_theta == 1e6
    assert config.tie_word_embeddings is True and config.stop_tokens == ()
    assert config.max_positions == 40_960


def test_what_changes_nothing_is_accepted():
    same = {
        "hidden_act": "silu",
        "attention_bias": False,
        "use_sliding_window": False,
        "rope_scaling": None,
        "layer_types": ["full_attention", "full_attention"],
        "rope_parameters": None,
        "eos_token_id": None,
    }
    assert Qwen3Config.from_json({**FIELDS, **same}) == Qwen3Config.from_json(FIELDS)


WRONG = [
    ("hidden_act", "gelu"),
    ("attention_bias", True),
    ("use_sliding_window", True),
    ("rope_scaling", {"rope_type": "yarn"}),
    ("rope_parameters", "x"),
    ("rope_parameters", [1]),
    ("rope_parameters", ""),
    ("layer_types", 3),
    ("layer_types", "full_attention"),
    ("layer_types", [3]),
    ("layer_types", [3, "a"]),
    ("layer_types", ["full_attention", None]),
    ("layer_types", [["full_attention"]]),
    ("tie_word_embeddings", "false"),
    ("tie_word_embeddings", 0),
    ("tie_word_embeddings", None),
    ("eos_token_id", "x"),
    ("eos_token_id", 1.5),
    ("eos_token_id", [None]),
    ("eos_token_id", -5),
    ("eos_token_id", [2, -5]),
    ("eos_token_id", True),
    ("rms_norm_eps", "x"),
    ("rms_norm_eps", 0),
]


@pytest.mark.parametrize(("key", "value"), WRONG, ids=str)
def test_a_field_that_is_not_computed_here(key, value):
    with pytest.raises(flashlib.ArgumentError) as caught:
        Qwen3Config.from_json({**FIELDS, key: value})
    message = str(caught.value)
    assert message.startswith(f"{key} has ") and "; expected " in message


@pytest.mark.parametrize("fields", [None, [1], "model_type"])
def test_fields_that_are_none(fields):
    with pytest.raises(flashlib.ArgumentError, match="config.json has .*; expected "):
        Qwen3Config.from_json(fields)


@pytest.mark.parametrize(
    "change",
    [
        {"stop_tokens": [2]},
        {"stop_tokens": (-1,)},
        {"stop_tokens": ("x",)},
        {"tie_word_embeddings": "no"},
    ],
    ids=str,
)
def test_sizes_that_are_said_in_python(change):
    name = next(iter(change))
    with pytest.raises(flashlib.ArgumentError, match=f"{name} has .*; expected "):
        Qwen3Config(5, 4, 4, layers=1, n_heads=1, n_kv_heads=1, head_dim=4, **change)
