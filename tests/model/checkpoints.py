"""Small checkpoints on disk, good ones, for tests to spoil."""

import json

import numpy as np
from conftest import require

from flashlib.model import Qwen3Config
from flashlib.model.weights import shapes

FIELDS = {
    "model_type": "qwen3",
    "vocab_size": 23,
    "hidden_size": 12,
    "intermediate_size": 20,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 6,
    "max_position_embeddings": 64,
    "rope_theta": 10_000.0,
    "tie_word_embeddings": True,
}


def tensors(fields=FIELDS, dtype=np.float32):
    """Random numbers under every name that a checkpoint must hold."""
    random = np.random.default_rng(0)
    return {
        name: random.standard_normal(shape).astype(dtype)
        for name, shape in shapes(Qwen3Config.from_json(fields))
    }


def write(folder, content=None, fields=FIELDS):
    """Write config.json and one file of tensors."""
    save_file = require("safetensors.numpy").save_file
    (folder / "config.json").write_text(json.dumps(fields))
    save_file(tensors(fields) if content is None else content, folder / ONE)
    return folder


def write_shards(folder, content, fields=FIELDS):
    """Write config.json and two files of tensors with an index."""
    save_file = require("safetensors.numpy").save_file
    (folder / "config.json").write_text(json.dumps(fields))
    names = sorted(content)
    parts = {"a.safetensors": names[::2], "b.safetensors": names[1::2]}
    for file, part in parts.items():
        save_file({name: content[name] for name in part}, folder / file)
    where = {name: file for file, part in parts.items() for name in part}
    (folder / INDEX).write_text(json.dumps({"weight_map": where}))
    return folder


ONE, INDEX = "model.safetensors", "model.safetensors.index.json"
