"""Run a whole language model over any backend and any cache (chapters 10, 13)."""

from flashlib.model.baker import load_baker, training_log
from flashlib.model.cache import ModelCache
from flashlib.model.checkpoint import load_model
from flashlib.model.config import Qwen3Config
from flashlib.model.generate import Step, generate
from flashlib.model.given_attention import GivenAttention
from flashlib.model.operations import Operations
from flashlib.model.progress import ProgressBar
from flashlib.model.qwen3 import Qwen3, random_model
from flashlib.model.rounding import RoundedOperations
from flashlib.model.tokenizer_file import FileTokenizer
from flashlib.model.tracing import TracingOperations
from flashlib.model.words import WordTokenizer

__all__ = [
    "FileTokenizer",
    "GivenAttention",
    "ModelCache",
    "Operations",
    "ProgressBar",
    "Qwen3",
    "Qwen3Config",
    "RoundedOperations",
    "Step",
    "TracingOperations",
    "WordTokenizer",
    "generate",
    "load_baker",
    "load_model",
    "random_model",
    "training_log",
]
