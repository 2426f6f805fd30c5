"""Programs for the simulated machine, from blocks to whole kernels (chapter 15).

A program takes NumPy arrays, runs on a machine of its own and returns arrays
together with the trace.
"""

from flashlib.programs.decode_tile import DecodeResult, decode_tile

__all__ = ["DecodeResult", "decode_tile"]
