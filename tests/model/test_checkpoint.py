"""A folder of weights is loaded whole, or one sentence says what is wrong."""

import json
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest
from conftest import require
from model.checkpoints import FIELDS, INDEX, ONE, tensors, write, write_shards

import flashlib
from flashlib.model import Qwen3Config, load_model

require("safetensors")
TOKENS = [3, 1, 4, 1, 5]
Q = "model.layers.1.self_attn.q_proj.weight"


def logits(folder):
    return load_model(folder).prefill(TOKENS, "numpy")[0]


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_all_three_types_are_widened(tmp_path, dtype):
    model = load_model(write(tmp_path, tensors(dtype=dtype)))
    assert model.dtype == np.float32
    stored = tensors(dtype=dtype)[Q].astype(np.float32)
    assert np.array_equal(model.weights.layers[1].q, stored.T)


def test_shards_are_one_checkpoint(tmp_path):
    one, many = tmp_path / "one", tmp_path / "many"
    one.mkdir()
    many.mkdir()
    assert np.array_equal(logits(write(one)), logits(write_shards(many, tensors())))


def test_an_untied_head_is_read(tmp_path):
    fields = {**FIELDS, "tie_word_embeddings": False}
    content = tensors(fields)
    model = load_model(write(tmp_path, content, fields))
    assert np.array_equal(model.weights.head, content["lm_head.weight"].T)


def test_a_tied_checkpoint_may_hold_its_head(tmp_path):
    content = tensors()
    plain = logits(write(tmp_path, content))
    content["lm_head.weight"] = content["model.embed_tokens.weight"]
    assert np.array_equal(logits(write(tmp_path, content)), plain)


def refuse(folder, kind, *words):
    with pytest.raises(kind) as caught:
        load_model(folder)
    message = str(caught.value)
    assert isinstance(caught.value, flashlib.FlashError)
    assert "\n" not in message and all(word in message for word in words), message


def spoil(name, change):
    """Return a function that spoils one entry of the tensors."""

    def apply(content):
        content[name] = change(content.get(name))
        return content

    return apply


CASES = {
    "missing": (
        lambda x: {name: x[name] for name in x if name != Q},
        flashlib.ArgumentError,
        ("has no tensor", Q),
    ),
    "several missing": (
        lambda x: {name: x[name] for name in x if "layers.1" not in name},
        flashlib.ArgumentError,
        ("has no tensor", "model.layers.1", "10 more"),
    ),
    "extra": (
        spoil("model.layers.2.mlp.up_proj.weight", lambda _: np.ones(1, "f4")),
        flashlib.ArgumentError,
        ("unknown", "model.layers.2.mlp.up_proj.weight"),
    ),
    "extra outside the layers": (
        spoil("visual.patch_embed.weight", lambda _: np.ones(1, "f4")),
        flashlib.ArgumentError,
        ("unknown", "visual.patch_embed.weight"),
    ),
    "extra beside the layers": (
        spoil("model.norm.bias", lambda _: np.ones(12, "f4")),
        flashlib.ArgumentError,
        ("unknown", "model.norm.bias"),
    ),
    "transposed": (
        spoil(Q, lambda x: np.ascontiguousarray(x.T)),
        flashlib.ShapeError,
        (Q, "(12, 24)", "(24, 12)"),
    ),
    "integers": (
        spoil(Q, lambda x: x.astype(np.int8)),
        flashlib.DTypeError,
        (Q, "I8"),
    ),
    "another head": (
        spoil("lm_head.weight", lambda _: np.ones((23, 12), "f4")),
        flashlib.ArgumentError,
        ("lm_head.weight", "tied"),
    ),
    "head of another shape": (
        spoil("lm_head.weight", lambda _: np.ones((12, 23), "f4")),
        flashlib.ShapeError,
        ("lm_head.weight", "(12, 23)"),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_wrong_tensor_is_named(tmp_path, case):
    change, kind, words = CASES[case]
    refuse(write(tmp_path, change(tensors())), kind, *words)


@pytest.mark.parametrize("keep", [0, 5, 100, -1])
def test_a_truncated_file_is_named(tmp_path, keep):
    write(tmp_path)
    whole = (tmp_path / ONE).read_bytes()
    (tmp_path / ONE).write_bytes(whole[:keep])
    size = f"{len(whole[:keep])} bytes"
    refuse(tmp_path, flashlib.ArgumentError, ONE, size, "copy it again")


CONFIGS = {
    "another model": ({"model_type": "llama"}, ("model_type", "llama")),
    "a bias": ({"attention_bias": True}, ("attention_bias",)),
    "a window": ({"use_sliding_window": True}, ("use_sliding_window",)),
    "layers of two kinds": (
        {"layer_types": ["full_attention", "sliding_attention"]},
        ("layer_types", "sliding_attention"),
    ),
    "stretched positions": (
        {"rope_parameters": {"rope_type": "yarn", "rope_theta": 1e4}},
        ("rope_type", "yarn"),
    ),
    "heads that do not divide": ({"num_key_value_heads": 3}, ("n_heads", "multiple")),
    "half a pair": ({"head_dim": 5}, ("head_dim", "even")),
    "no layers": ({"num_hidden_layers": 0}, ("layers",)),
    "a theta that is no number": ({"rope_theta": "much"}, ("rope_theta", "much")),
}


@pytest.mark.parametrize("case", CONFIGS)
def test_a_configuration_that_is_not_computed_here(tmp_path, case):
    change, words = CONFIGS[case]
    write(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({**FIELDS, **change}))
    refuse(tmp_path, flashlib.FlashError, *words)


@pytest.mark.parametrize("key", ["vocab_size", "head_dim", "rope_theta", "model_type"])
def test_a_field_is_missing(tmp_path, key):
    write(tmp_path)
    fields = {name: value for name, value in FIELDS.items() if name != key}
    (tmp_path / "config.json").write_text(json.dumps(fields))
    refuse(tmp_path, flashlib.ArgumentError, key)


@pytest.mark.parametrize("path", [None, 3, ["x"]], ids=str)
def test_a_path_that_is_none(path):
    refuse(path, flashlib.ArgumentError, "path has", "expected a folder")


def test_a_head_that_is_not_tied_has_to_be_there(tmp_path):
    fields = {**FIELDS, "tie_word_embeddings": False}
    content = tensors(FIELDS)
    refuse(write(tmp_path, content, fields), flashlib.ArgumentError, "lm_head.weight")


def test_files_are_missing(tmp_path):
    refuse(tmp_path / "nowhere", flashlib.ArgumentError, "nowhere")
    refuse(tmp_path, flashlib.ArgumentError, "config.json")
    write(tmp_path)
    (tmp_path / ONE).unlink()
    refuse(tmp_path, flashlib.ArgumentError, ONE)
    (tmp_path / "config.json").write_text("{")
    refuse(tmp_path, flashlib.ArgumentError, "config.json", "JSON")


def test_an_index_is_wrong(tmp_path):
    write_shards(tmp_path, tensors())
    (tmp_path / "b.safetensors").unlink()
    refuse(tmp_path, flashlib.ArgumentError, "b.safetensors")
    (tmp_path / INDEX).write_text(json.dumps({"weight_map": {"x": "../a.safetensors"}}))
    refuse(tmp_path, flashlib.ArgumentError, "../a.safetensors")
    (tmp_path / INDEX).write_text("{}")
    refuse(tmp_path, flashlib.ArgumentError, "weight_map")


def test_a_tensor_in_two_shards(tmp_path):
    write_shards(tmp_path, tensors())
    (tmp_path / "b.safetensors").write_bytes((tmp_path / "a.safetensors").read_bytes())
    refuse(tmp_path, flashlib.ArgumentError, "expected it once")


def test_rope_theta_has_an_old_and_a_new_place():
    old = Qwen3Config.from_json({**FIELDS, "rope_theta": 5e5})
    new = {k: v for k, v in FIELDS.items() if k != "rope_theta"}
    new["rope_parameters"] = {"rope_type": "default", "rope_theta": 5e5}
    assert Qwen3Config.from_json(new) == old


def test_stop_tokens_are_one_or_several():
    assert Qwen3Config.from_json({**FIELDS, "eos_token_id": 2}).stop_tokens == (2,)
    both = Qwen3Config.from_json({**FIELDS, "eos_token_id": [2, 7]})
    assert both.stop_tokens == (2, 7)


def test_a_tokenizer_comes_along(tmp_path):
    tokenizers = require("tokenizers")
    words = {"[UNK]": 0, "a": 1, "baker": 2}
    inner = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, "[UNK]"))
    inner.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    assert load_model(write(tmp_path)).tokenizer is None
    inner.save(str(tmp_path / "tokenizer.json"))
    tokenizer = load_model(tmp_path).tokenizer
    assert tokenizer.encode("a baker").tolist() == [1, 2] and len(tokenizer) == 3
    assert tokenizer.decode(np.array([2, 1])) == "baker a"


def test_a_broken_tokenizer_disturbs_only_who_asks_for_text(tmp_path):
    require("tokenizers")
    write(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}")
    model = load_model(tmp_path)
    assert model.prefill(TOKENS, "numpy")[0].shape == (5, 23)
    with pytest.raises(flashlib.ArgumentError, match="tokenizer.json"):
        model.tokenizer.encode("a baker")


def test_importing_does_not_load_the_reader():
    code = (
        "import sys, flashlib, flashlib.model; "
        "print({'safetensors', 'tokenizers', 'numba'} & sys.modules.keys())"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.stdout.strip() == "set()", run.stderr
