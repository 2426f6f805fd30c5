"""Programs for the simulated machine, from blocks to whole kernels (chapter 15).

A program takes NumPy arrays, runs on a machine of its own and returns arrays
together with the trace.
"""

from flashlib.programs.attention_cte import CteResult, attention_cte
from flashlib.programs.attention_tkg import TkgResult, attention_tkg
from flashlib.programs.decode_tile import DecodeResult, decode_tile
from flashlib.programs.gen_mask_tkg import GenMaskResult, gen_mask_tkg
from flashlib.programs.tkg.config import TkgConfig

__all__ = [
    "CteResult",
    "DecodeResult",
    "GenMaskResult",
    "TkgConfig",
    "TkgResult",
    "attention_cte",
    "attention_tkg",
    "decode_tile",
    "gen_mask_tkg",
]
