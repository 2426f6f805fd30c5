"""Run PyTorch's attention in a process of its own (book).

Numba and PyTorch bring an OpenMP library each. In one process the matrix products
of PyTorch may ask the wrong one whether they are alone, and start more threads
than there are cores: with two threads it then takes ten times as long as by
itself. A comparison must not do that to its peer, so the peer gets a process, and
times itself there; between its turns it waits without using a core.
"""

import importlib.util
import os
import pickle
import subprocess
import sys
import time

import numpy as np

__all__ = ["TorchProcess"]


class TorchProcess:
    """PyTorch's attention over given arrays, ready to run; close it when done.

    Parameters
    ----------
    q, k, v : numpy.ndarray
        ``[batch, seq, heads, width]``; laid out as PyTorch likes them, heads first,
        before any clock starts.
    causal : bool
    cores : int
        Threads that PyTorch may use.
    """

    def __init__(self, q, k, v, *, causal: bool, cores: int):
        environment = {**os.environ, "OMP_NUM_THREADS": str(cores)}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "flashlib.measure.torch_process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
        )
        self._say((q, k, v, causal, cores))

    def __call__(self) -> np.ndarray:
        """Return the result, ``[batch, seq, heads, width]``."""
        return self._ask("result")

    def seconds(self) -> float:
        """Run once, and return how long it took there."""
        return self._ask("seconds")

    def close(self) -> None:
        """End the process."""
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()

    def _say(self, message: object) -> None:
        pickle.dump(message, self._process.stdin)
        self._process.stdin.flush()

    def _ask(self, what: str) -> object:
        self._say(what)
        return pickle.load(self._process.stdout)


def installed() -> bool:
    """Whether there is a PyTorch to compare with."""
    return importlib.util.find_spec("torch") is not None


def serve(requests, answers) -> None:
    """Answer what a :class:`TorchProcess` asks, until it closes."""
    import torch

    *arrays, causal, cores = pickle.load(requests)
    torch.set_num_threads(cores)
    tensors = [torch.from_numpy(x).transpose(1, 2).contiguous() for x in arrays]
    while True:
        try:
            what = pickle.load(requests)
        except EOFError:
            return
        start = time.perf_counter()
        out = torch.nn.functional.scaled_dot_product_attention(
            *tensors, is_causal=causal, enable_gqa=True
        )
        spent = time.perf_counter() - start
        wanted = spent if what == "seconds" else out.transpose(1, 2).numpy()
        pickle.dump(wanted, answers)
        answers.flush()


if __name__ == "__main__":
    serve(sys.stdin.buffer, sys.stdout.buffer)
