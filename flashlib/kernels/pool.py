"""Give every head to the next free core (chapters 7, 9).

Heads share nothing but K and V, which nobody writes: head h owns the stripe
``out[:, h]``, and no lock is needed. How much this gains is limited by how
many heads there are, and by the core that gets the last one.
"""

from numba import prange

from flashlib.kernels.jit import inner
from flashlib.kernels.simd import attend_head
from flashlib.kernels.threads import counters, fetch_add

__all__ = ["build_pool"]


@inner
def attend_heads(
    counter, q, k, v, mask, bias, sink, scale, softcap, left, right, tile, out, lse
):
    """Take heads until none is left."""
    h = fetch_add(counter)
    while h < q.shape[1]:
        attend_head(
            q, k, v, mask, bias, sink, scale, softcap, left, right, tile, h, out, lse
        )
        h = fetch_add(counter)


def build_pool(decorate, target, stamp):
    """Return the kernel that runs heads side by side, see `build_blocked`."""

    @decorate
    def attend(
        q, k, v, mask, bias, sink, scale, softcap, left, right, tile, n_workers, out,
        lse,
    ):  # fmt: skip
        counter = counters(1)
        for _ in prange(n_workers):
            attend_heads(
                counter, q, k, v, mask, bias, sink, scale, softcap, left, right, tile,
                out, lse,
            )  # fmt: skip
        return stamp

    return attend
