"""Load a Qwen3 model from a folder, or say which tensor is wrong (chapter 10).

A folder as Hugging Face publishes them: config.json, and one safetensors file
or several with an index. All names, shapes and types are checked before the
first tensor is read, so that a bad checkpoint costs no time and one sentence.
"""

import json
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import ml_dtypes  # noqa: F401 - makes bfloat16 known to NumPy, and to safetensors
import numpy as np

from flashlib.errors import ArgumentError, DTypeError, ShapeError, shown
from flashlib.model.config import Qwen3Config
from flashlib.model.qwen3 import Qwen3
from flashlib.model.tokenizer_file import FileTokenizer
from flashlib.model.weights import EMBEDDING, HEAD, gather, shapes

__all__ = ["load_model"]

ONE_FILE, INDEX = "model.safetensors", "model.safetensors.index.json"
TOKENIZER = "tokenizer.json"
_TYPES = ("F32", "F16", "BF16")


class _Entry(NamedTuple):
    """Where a tensor lies, and what the header of its file says about it."""

    file: str
    shape: tuple[int, ...]
    dtype: str


def load_model(path: str | PathLike) -> Qwen3:
    """Load a dense Qwen3 model from a Hugging Face folder.

    Parameters
    ----------
    path : str or path
        Folder with config.json and model.safetensors, or several files and
        model.safetensors.index.json.

    Returns
    -------
    Qwen3
        In float32, whatever the type of the checkpoint, with its tokenizer if
        there is a tokenizer.json.

    Raises
    ------
    ArgumentError
        If a file or a tensor is missing, truncated or one too many, or if the
        configuration is not that of a dense Qwen3 model.
    ShapeError, DTypeError
        If a tensor has another shape than the configuration says, or is not
        float32, float16 or bfloat16.
    """
    folder = Path(path) if isinstance(path, (str, PathLike)) else None
    if folder is None or not folder.is_dir():
        name = shown(path if folder is None else str(path))
        raise ArgumentError(
            f"path has {name}; expected a folder with config.json and weights; models "
            "are published in this form"
        )
    config = Qwen3Config.from_json(_read_json(folder / "config.json"))
    entries = _headers(folder)
    _check(config, entries)
    with _Reader(folder, entries) as read:
        weights = gather(config, read)
        if config.tie_word_embeddings and HEAD in entries:
            _check_tied(weights.embedding, read(HEAD))
    words = folder / TOKENIZER
    return Qwen3(config, weights, FileTokenizer(words) if words.is_file() else None)


class _Reader:
    """Return tensors by name in float32, every file opened once."""

    def __init__(self, folder: Path, entries: dict[str, _Entry]):
        self._folder, self._entries = folder, entries
        self._open: dict[str, object] = {}

    def __enter__(self) -> "_Reader":
        return self

    def __exit__(self, *_: object) -> None:
        self._open.clear()

    def __call__(self, name: str) -> np.ndarray:
        file = self._entries[name].file
        if file not in self._open:
            self._open[file] = _open(self._folder / file)
        return self._open[file].get_tensor(name).astype(np.float32)


def _read_json(path: Path) -> dict:
    if not path.is_file():
        raise ArgumentError(
            f"path has no {path.name}; expected a file in {path.parent}; it says what "
            "the weights are; copy the whole folder"
        )
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ArgumentError(
            f"{path.name} has no valid JSON; expected fields; {error}; copy it again"
        ) from None
    if not isinstance(fields, dict):
        raise ArgumentError(
            f"{path.name} has a {type(fields).__name__}; expected fields; names and "
            "values are what is read from it"
        )
    return fields


def _open(path: Path):
    """Open one file, which reads and checks its header."""
    try:
        from safetensors import SafetensorError, safe_open
    except ImportError:
        raise ArgumentError(
            f"path has {path.name}; expected the package safetensors to read it; "
            "install safetensors"
        ) from None
    if not path.is_file():
        raise ArgumentError(
            f"path has no {path.name}; expected a file in {path.parent}; it holds "
            "weights; copy the whole folder"
        )
    try:
        return safe_open(path, framework="np")
    except SafetensorError as error:
        size = path.stat().st_size
        raise ArgumentError(
            f"{path.name} has {size} bytes; expected a whole file; {error}; "
            "copy it again"
        ) from None


def _headers(folder: Path) -> dict[str, _Entry]:
    """Return an entry for every tensor of every file."""
    entries: dict[str, _Entry] = {}
    for file in _files(folder):
        reader = _open(folder / file)
        for name in reader.keys():
            if name in entries:
                raise ArgumentError(
                    f"{file} has {name}; expected it once; {entries[name].file} has it "
                    "too"
                )
            part = reader.get_slice(name)
            entries[name] = _Entry(file, tuple(part.get_shape()), part.get_dtype())
    return entries


def _files(folder: Path) -> list[str]:
    if not (folder / INDEX).is_file():
        return [ONE_FILE]
    where = _read_json(folder / INDEX).get("weight_map")
    if not isinstance(where, dict) or not where:
        raise ArgumentError(
            f"{INDEX} has no weight_map; expected tensor names and files; it says in "
            "which file a tensor lies"
        )
    files = sorted(set(map(str, where.values())))
    for file in files:
        if Path(file).name != file:
            raise ArgumentError(
                f"{INDEX} has {file!r}; expected a file of the folder; nothing outside "
                "of it is read"
            )
    return files


def _check(config: Qwen3Config, entries: dict[str, _Entry]) -> None:
    wanted = dict(shapes(config))
    missing = [name for name in wanted if name not in entries]
    # Some tied checkpoints hold their head although it is the embedding.
    known = {*wanted, HEAD} if config.tie_word_embeddings else {*wanted}
    extra = sorted(entries.keys() - known)
    for names, what in ((missing, "no tensor"), (extra, "an unknown tensor")):
        if names:
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            raise ArgumentError(
                f"path has {what} {names[0]}{more}; expected the {len(wanted)} tensors "
                "that config.json implies; copy the whole checkpoint"
            )
    if HEAD in entries:
        wanted[HEAD] = wanted[EMBEDDING]
    for name, shape in wanted.items():
        if entries[name].shape != shape:
            raise ShapeError(
                f"{name} has shape {entries[name].shape}; expected {shape}; the sizes "
                "come from config.json"
            )
        if entries[name].dtype not in _TYPES:
            raise DTypeError(
                f"{name} has type {entries[name].dtype}; expected one of "
                f"{', '.join(_TYPES)}; what they hold is computed in float32"
            )


def _check_tied(embedding: np.ndarray, head: np.ndarray) -> None:
    if not np.array_equal(embedding, head):
        raise ArgumentError(
            f"{HEAD} has other numbers than {EMBEDDING}; expected equal ones; "
            "config.json says that they are tied"
        )
