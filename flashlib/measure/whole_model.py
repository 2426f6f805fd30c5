"""Measure a whole model: ``python -m flashlib.measure.whole_model`` (chapter 11).

A reader of an engine waits for the first token, and then for one after the other. The
model has the published geometry of 0.6 billion weights, drawn at random; all layers
share the memory of one, so that the operations are those of the model and the weights
stay in reach of a laptop.
"""

import argparse
import math
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from flashlib.backends import available_backends
from flashlib.cores import usable_cores
from flashlib.measure.record import FOLDER, print_table, rows_of, write
from flashlib.measure.timing import Timing, interleave
from flashlib.model import Qwen3, Qwen3Config, random_model
from flashlib.model.weights import shapes

__all__ = ["FIRST", "NEXT", "compare", "main"]

TOKENS = 511
# Tokens that are decoded one by one, after a prompt.
DECODED = 4
FIRST, NEXT = "first token", "next token"


def compare(
    model: Qwen3, n: int, rounds: int
) -> tuple[dict[str, Timing], dict[str, Timing]]:
    """Time the first token after `n`, and the next ones, with every backend in turn.

    Returns
    -------
    first, following : dict of str to Timing
        By backend; `following` in seconds per token, while the text grows by a few.
    """
    names = available_backends()
    tokens = np.arange(n) % model.config.vocab_size
    want, caches = None, {}
    for name in names:
        logits, caches[name] = model.prefill(tokens, name, last_only=True)
        want = logits if want is None else want
        if not np.abs(logits - want).max() <= 1e-3 * np.abs(want).max():
            raise AssertionError(f"{name} gives other logits; expected equal ones")

    def first(name: str) -> Callable[[], object]:
        return lambda: model.prefill(tokens, name, last_only=True)

    def following(name: str) -> Callable[[], object]:
        def decode() -> None:
            for token in range(DECODED):
                model.decode(token, caches[name], name)

        return decode

    spent = interleave({name: following(name) for name in names}, rounds=rounds)
    each = {
        name: Timing(*(x / DECODED for x in timing[:3]), timing.rounds)
        for name, timing in spent.items()
    }
    return interleave({name: first(name) for name in names}, rounds=rounds), each


def main(arguments: Sequence[str] | None = None, folder: Path = FOLDER) -> None:
    """Measure, print and write ``whole_model.json``."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tokens", type=int, default=TOKENS)
    parser.add_argument("--layers", type=int, help="fewer than the model has")
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args(arguments)
    config = Qwen3Config.qwen3_0_6b()
    model = random_model(config, layers=chosen.layers, share_layers=True)
    first, following = compare(model, chosen.tokens, chosen.rounds)
    where = {"seq": chosen.tokens, "cores": usable_cores()}
    rows = rows_of(first, chosen.tokens * 1e9, "blas", what=FIRST, **where)
    rows += rows_of(following, 1e9, "blas", what=NEXT, **where)
    print_table(rows, "tokens/s", "blas")
    config, cache = model.config, model.new_cache(chosen.tokens)
    facts = {
        "layers": config.layers,
        "rounds": chosen.rounds,
        "weight_bytes": 4 * sum(math.prod(shape) for _, shape in shapes(config)),
        "cache_bytes": sum(layer.k.nbytes + layer.v.nbytes for layer in cache.layers),
    }
    print(write("whole_model", rows, folder, unit="tokens/s", peer="blas", **facts))


if __name__ == "__main__":
    main()
