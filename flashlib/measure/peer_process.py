"""Run another library's attention in a process of its own (book).

Numba and PyTorch bring an OpenMP library each. In one process the matrix products
of PyTorch may ask the wrong one whether they are alone, and start more threads
than there are cores: with two threads it then takes ten times as long as by
itself. A comparison must not do that to its peer, so each peer gets a process, and
times itself there; between its turns it waits without using a core.
"""

import os
import pickle
import subprocess
import sys
import time

import numpy as np

from flashlib.measure.peer_libraries import LIBRARIES

__all__ = ["PeerProcess"]


class PeerProcess:
    """Attention of one library over given arrays, ready to run; close it when done.

    Parameters
    ----------
    library : str
        One of `LIBRARIES`.
    q, k, v : ndarray
        ``[batch, seq, heads, width]``.
    causal : bool
    cores : int
        Threads that the library may use.
    """

    def __init__(self, library: str, q, k, v, *, causal: bool, cores: int):
        environment = {**os.environ, "OMP_NUM_THREADS": str(cores)}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "flashlib.measure.peer_process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
        )
        self._say((library, (q, k, v), {"causal": causal, "cores": cores}))

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


def serve(requests, answers) -> None:
    """Answer what a :class:`PeerProcess` asks, until it closes."""
    library, tensors, how = pickle.load(requests)
    attend, as_array = LIBRARIES[library](*tensors, **how)
    while True:
        try:
            what = pickle.load(requests)
        except EOFError:
            return
        start = time.perf_counter()
        out = attend()
        spent = time.perf_counter() - start
        pickle.dump(spent if what == "seconds" else as_array(out), answers)
        answers.flush()


if __name__ == "__main__":
    serve(sys.stdin.buffer, sys.stdout.buffer)
