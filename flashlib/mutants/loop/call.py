"""What one attention call asks for, in the form that the plain loop reads (book)."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Call:
    """One call, prepared once: working dtype, defaults filled in, masks spread out.

    Nothing is validated: the package does that before any kernel, and the museum is
    only handed calls that are legal.

    Parameters
    ----------
    q, k, v : ndarray
        In the working dtype (float32, or float64 for float64 input).
    scale : float or None
        None stands for ``1 / sqrt(head_dim)``.
    softcap : float or None
        None for no cap.
    left, right : int or None
        Window around the position of a row, both ends inclusive, None for no limit.
    mask : ndarray or None
        Boolean ``[n_heads, seq_q, seq_k]``, True attends.
    bias : ndarray or None
        ``[n_heads, seq_q, seq_k]`` in the working dtype.
    sink : ndarray or None
        ``[n_heads]`` in the working dtype.
    tile : int
        Keys per tile.
    """

    q: np.ndarray
    k: np.ndarray
    v: np.ndarray
    scale: float | None
    softcap: float | None
    left: int | None
    right: int | None
    mask: np.ndarray | None
    bias: np.ndarray | None
    sink: np.ndarray | None
    tile: int

    @property
    def n_heads(self) -> int:
        """Query heads."""
        return self.q.shape[1]

    @property
    def n_kv_heads(self) -> int:
        """Key and value heads."""
        return self.k.shape[1]

    @property
    def seq_q(self) -> int:
        """Query rows."""
        return self.q.shape[0]

    @property
    def seq_k(self) -> int:
        """Keys."""
        return self.k.shape[0]


def spread(array: object, call_shape: tuple[int, int, int], dtype) -> np.ndarray | None:
    """Broadcast a mask or bias to ``[n_heads, seq_q, seq_k]``; None stays None."""
    if array is None:
        return None
    return np.broadcast_to(np.asarray(array, dtype), call_shape)
