"""Decode, prefill and the CPU engine on the same problems."""

import numpy as np
import pytest
from programs.decode_problem import BF16, call, output, problem

import flashlib
from flashlib.machine import static_histogram
from flashlib.programs import TkgConfig, attention_cte, attention_tkg, tkg


def test_the_running_row():
    """1 query, 6 keys, scores (1, 3, 2, 5, 4, 0): the last key is the active one."""
    scores = np.array([1, 3, 2, 5, 4, 0], np.float32)
    v = np.stack([np.arange(6), -np.arange(6)], 1).astype(np.float32)
    k = np.stack([scores, 0 * scores], 1)
    q = np.array([[1, 0]], np.float32)
    want = flashlib.flash_attention(q[:, None], k[:, None], v[:, None], scale=1.0).out
    cache = np.zeros((2, 1, 1, 128, 2), np.float32)
    cache[0, 0, 0, :5], cache[1, 0, 0, :5] = k[:5], v[:5]
    config = TkgConfig(
        curr_sprior=128,
        full_sprior=128,
        tp_k_prior=True,
        use_pos_id=True,
        qk_in_sb=True,
    )
    decode = attention_tkg(
        q.T, k[5:].T, v[None, None, 5:], *cache, config=config, pos_ids=np.array([[5]])
    )
    np.testing.assert_allclose(decode.out[0, 0, :, 0], want[0, 0], rtol=1e-6)
    prefill = attention_cte(q[None], k[None], v[None], scale=1.0, causal=False)
    np.testing.assert_allclose(prefill.out[0, 0], want[0, 0], rtol=1e-2)


@pytest.mark.parametrize("lnc", [1, 2])
def test_the_same_random_problem(lnc):
    """Values that bfloat16 holds, so that prefill differs by the rounding of p only."""
    p = problem(1, 4, 3, 512, 512, 32, pos=[509], dtype=BF16)
    p.q, p.k, p.v = (x.astype(np.float32) for x in (p.q, p.k, p.v))
    p.k_active, p.v_active = (x.astype(np.float32) for x in (p.k_active, p.v_active))
    k, v = p.k[0].copy(), p.v[0].copy()
    k[509:], v[509:] = p.k_active[0], p.v_active[0]
    q = p.q[0].transpose(1, 0, 2)
    cpu = flashlib.flash_attention(q, k[:, None], v[:, None], causal=True, scale=1.0)
    decode = output(p, call(p, lnc=lnc))[0].transpose(2, 0, 1)
    np.testing.assert_allclose(decode, cpu.out, atol=1e-6)
    # three rows per head at positions 509, 510 and 511
    prefill = attention_cte(
        p.q[0], k[None], v[None], scale=1.0, q_offset=509, lnc=lnc
    ).out.transpose(1, 0, 2)
    np.testing.assert_allclose(prefill, cpu.out, atol=4e-3 * np.abs(cpu.out).max())


def test_a_row_that_sees_nothing():
    """One table: NaN as published, 0 hardened, the mean of v in prefill."""
    p = problem(1, 1, 1, 128, 128, 8)
    nothing = np.zeros((128, 1, 1, 1), bool)
    sink = np.zeros((1, 1), np.float32)
    found = {}
    for name, more in {"decode": {}, "decode, hardened": {"hardened": True}}.items():
        found[name] = output(p, call(p, given_mask=nothing, **more)).ravel()
        p.sink = sink
        found[name + ", sink"] = output(p, call(p, given_mask=nothing, **more)).ravel()
        p.sink = None
    v = p.v[:1]
    none = {"bound_min": np.zeros((1, 1)), "bound_max": np.zeros((1, 1))}
    prefill = attention_cte(p.q[0], p.k[:1], v, scale=1.0, causal=False, **none)
    found["prefill"] = prefill.out.ravel()
    mean = v.astype(BF16).astype(np.float64).mean(1)[0]
    want = {
        "decode": np.full(8, np.nan),
        "decode, sink": np.zeros(8),
        "decode, hardened": np.zeros(8),
        "decode, hardened, sink": np.zeros(8),
        "prefill": mean,
    }
    assert found.keys() == want.keys()
    for name, row in want.items():
        np.testing.assert_allclose(found[name], row, atol=1e-6, err_msg=name)


def test_call_sites_are_not_executions():
    """A site may run never or often: counting sites says nothing about a run."""
    import importlib
    import pkgutil

    sites = {}
    for module in pkgutil.iter_modules(tkg.__path__, f"{tkg.__name__}."):
        found = static_histogram(importlib.import_module(module.name))
        for name, n in found.items():
            sites[name] = sites.get(name, 0) + n
    executed = call(problem(4, 1, 5, 1024, 1024, 128)).traces[0].histogram()
    assert sites["nc_matmul"] == 3 and executed["nc_matmul"] == 128 + 8 + 32
    assert sites["sendrecv"] == 1 and "sendrecv" not in executed
    assert sites["dma_transpose"] == 3 and "dma_transpose" not in executed
