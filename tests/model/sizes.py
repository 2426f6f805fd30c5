"""The sizes of a model that runs in a moment."""

from flashlib.model import Qwen3Config

TINY = Qwen3Config(
    vocab_size=61,
    hidden_size=24,
    intermediate_size=40,
    layers=3,
    n_heads=4,
    n_kv_heads=2,
    head_dim=8,
    rope_theta=1e4,
    max_positions=200,
)
