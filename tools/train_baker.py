"""Train the story model that ships with the package.

    .venv/bin/python tools/train_baker.py [--steps N] [--out FOLDER]

Needs the extra `training`. One thread, seeded, deterministic algorithms: the same
versions on the same kind of processor write the same bytes. Every step sees stories
that no step before has seen, so there is nothing to learn by heart.
"""

import argparse
import json
import math
import pathlib
import random
import time

import torch
import transformers
from safetensors.torch import save_file

from flashlib.model.stories import story
from flashlib.model.words import START, WordTokenizer, split_words

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "flashlib/model/baker"
SEED, HELD_OUT_SEED = 4, 5
STORIES = 8  # per step
STEPS, WARM_UP, LEARNING_RATE = 1500, 50, 3e-3
SIZES = {
    "hidden_size": 128,
    "intermediate_size": 384,
    "num_hidden_layers": 6,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "max_position_embeddings": 512,
}
ROPE_THETA, EPS = 10_000.0, 1e-6


def make_tokenizer():
    """Return a tokenizer of every word that the grammar can say."""
    dice = random.Random(SEED)
    words = {word for _ in range(5000) for word in split_words(story(dice))}
    return WordTokenizer([START, *sorted(words)])


def make_batch(dice, tokenizer):
    """Return tokens and labels ``[STORIES, seq]``, a story a row, padded."""
    texts = [tokenizer.encode(story(dice)) for _ in range(STORIES)]
    # The last label of a row is the start of the next story.
    width = max(map(len, texts)) + 1
    tokens = torch.full((STORIES, width), tokenizer.start)
    labels = torch.full((STORIES, width), -100)
    for row, text in enumerate(texts):
        tokens[row, : len(text)] = torch.from_numpy(text)
        labels[row, : len(text) + 1] = tokens[row, : len(text) + 1]
    return tokens, labels


def make_model(vocab_size):
    """Return the untrained model."""
    config = transformers.Qwen3Config(
        vocab_size=vocab_size,
        rope_parameters={"rope_type": "default", "rope_theta": ROPE_THETA},
        rms_norm_eps=EPS,
        tie_word_embeddings=True,
        initializer_range=SIZES["hidden_size"] ** -0.5,
        **SIZES,
    )
    return transformers.Qwen3ForCausalLM(config)


def rate(step, steps):
    """Return the learning rate: a short rise, then half a cosine down to 0."""
    rise = min(1.0, (step + 1) / WARM_UP)
    return LEARNING_RATE * rise * 0.5 * (1 + math.cos(math.pi * step / steps))


def train(model, tokenizer, steps):
    """Train the model, and return the loss of every 25th step."""
    dice, curve, began = random.Random(SEED), [], time.monotonic()
    optimizer = torch.optim.AdamW(
        model.parameters(), betas=(0.9, 0.95), weight_decay=0.01
    )
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = rate(step, steps)
        tokens, labels = make_batch(dice, tokenizer)
        loss = model(input_ids=tokens, labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 25 == 0 or step == steps - 1:
            curve.append({"step": step, "loss": round(loss.item(), 4)})
            seconds = time.monotonic() - began
            print(f"{step:5} loss {loss.item():.4f} {seconds:5.0f} s", flush=True)
    return curve


def held_out_loss(model, tokenizer):
    """Return the mean loss per word of 80 stories that training never saw."""
    dice = random.Random(HELD_OUT_SEED)
    with torch.no_grad():
        losses = [
            model(input_ids=tokens, labels=labels).loss.item()
            for tokens, labels in (make_batch(dice, tokenizer) for _ in range(10))
        ]
    return round(sum(losses) / len(losses), 4)


def save(model, tokenizer, log, folder):
    """Write config, weights, words and log."""
    folder.mkdir(parents=True, exist_ok=True)
    weights = {
        name: tensor.contiguous()
        for name, tensor in model.state_dict().items()
        if name != "lm_head.weight"  # tied to the embedding
    }
    file = folder / "model.safetensors"
    save_file(weights, file, metadata={"format": "pt"})
    file.chmod(0o644)
    config = {
        "model_type": "qwen3",
        "vocab_size": len(tokenizer),
        **SIZES,
        "hidden_act": "silu",
        "rms_norm_eps": EPS,
        "rope_theta": ROPE_THETA,
        "tie_word_embeddings": True,
        "attention_bias": False,
        "eos_token_id": tokenizer.start,
        "dtype": "float16",
    }
    files = {"config": config, "words": tokenizer.words, "training_log": log}
    for name, content in files.items():
        text = json.dumps(content, indent=0 if name == "words" else 2)
        (folder / f"{name}.json").write_text(text + "\n", encoding="utf-8")


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--out", type=pathlib.Path, default=FOLDER)
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    torch.manual_seed(SEED)
    tokenizer = make_tokenizer()
    model = make_model(len(tokenizer))
    curve = train(model.train(), tokenizer, options.steps)
    # What is shipped is float16, so that is what is judged.
    model = model.eval().half().float()
    log = {
        "seed": SEED,
        "held_out_seed": HELD_OUT_SEED,
        "steps": options.steps,
        "stories": options.steps * STORIES,
        "parameters": sum(p.numel() for p in model.parameters()),
        "torch": torch.__version__.split("+")[0],
        "transformers": transformers.__version__,
        "held_out_loss": held_out_loss(model, tokenizer),
        "curve": curve,
    }
    save(model.half(), tokenizer, log, options.out)
    print(f"held-out loss {log['held_out_loss']}, written to {options.out}")


if __name__ == "__main__":
    main()
