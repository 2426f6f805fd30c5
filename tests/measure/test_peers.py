"""Other libraries compute the same attention, and time themselves."""

import numpy as np
import pytest

from flashlib.measure.peers import add_peers, installed_peers
from flashlib.measure.prefill import check
from flashlib.testing import make_qkv, oracle


@pytest.mark.parametrize("causal", [True, False])
def test_every_peer_that_is_installed_computes_attention(causal):
    tensors = make_qkv(33, n_heads=4, n_kv_heads=2, head_dim=16, seed=1)
    functions = {}
    batch = [x[None] for x in tensors]
    with add_peers(functions, *batch, causal=causal, cores=1) as names:
        assert tuple(functions) == names == installed_peers()
        for peer in functions.values():
            check(peer()[0], tensors, causal)
            assert peer.seconds() > 0


def test_a_peer_decodes_one_row():
    q, k, v = make_qkv(1, 40, n_heads=4, n_kv_heads=2, head_dim=16, seed=2)
    functions = {}
    with add_peers(functions, q[None], k[None], v[None], causal=False, cores=1):
        for peer in functions.values():
            np.testing.assert_allclose(peer()[0], oracle(q, k, v).out, atol=1e-5)
