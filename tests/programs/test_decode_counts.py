"""What a decode call executes: counts, bytes and messages."""

import pytest
from programs.decode_problem import BF16, call, difference, output, problem

import flashlib
from flashlib.machine import timeline


def steps(trace):
    return trace.histogram(by=("step", "op"))


def test_counts_of_one_tile():
    """Published counts: batch 4, 5 queries, 1,024 slots, head_dim 128."""
    expected = {
        ("mm1", "memset"): 1,
        ("mm1", "tensor_copy_predicated"): 4,
        ("k_load", "dma_copy"): 4,
        ("k_load", "tensor_copy"): 4,
        ("max", "tensor_reduce"): 2,
        ("max", "nc_transpose"): 2,
        ("max", "tensor_scalar"): 1,
        ("max", "tensor_copy"): 2,
        ("exp", "tensor_tensor"): 1,
        ("exp", "activation"): 1,
        ("sum", "nc_matmul"): 8,
        ("sum", "tensor_reduce"): 1,
        ("recip", "reciprocal"): 1,
        ("recip", "nc_transpose"): 1,
        ("recip", "nc_stream_shuffle"): 4,
        ("v_load", "dma_copy"): 8,
        ("mm2", "nc_matmul"): 32,
        ("mm2", "tensor_tensor"): 4,
        ("store", "dma_copy"): 1,
    }
    p = problem(4, 1, 5, 1024, 1024, 128, dtype=BF16)
    for strided, products in ((True, 128), (False, 32)):
        trace = call(p, strided_mm1=strided).traces[0]
        counts = {
            k: c for k, c in steps(trace).items() if k[0] not in ("setup", "mask")
        }
        assert counts == expected | {("mm1", "nc_matmul"): products}
        loads = trace.bytes(step="k_load") + trace.bytes(step="v_load")
        assert loads == 2 * 4 * 1024 * 128 * 2 + 4 * 5 * 128 * 2
        assert timeline(trace).total > 0


def test_heads_ride_along():
    one = problem(4, 1, 5, 1024, 1024, 128, dtype=BF16)
    eight = problem(4, 8, 5, 1024, 1024, 128, dtype=BF16)
    for strided, products in ((True, (128, 48)), (False, (32, 32))):
        traces = [call(p, strided_mm1=strided).traces[0] for p in (one, eight)]
        counts = [steps(t) for t in traces]
        assert tuple(c["mm1", "nc_matmul"] for c in counts) == products
        assert [c["mm2", "nc_matmul"] for c in counts] == [32, 32]
        assert [c["sum", "nc_matmul"] for c in counts] == [8, 16]
        moved = [t.bytes(step="k_load") + t.bytes(step="v_load") for t in traces]
        assert moved[0] == moved[1]
        widths = [
            {r.read("moving").n for r in t if r.op == "nc_matmul" and r.step == "mm1"}
            for t in traces
        ]
        assert widths == [{5}, {40}]
    with pytest.raises(flashlib.ShapeError, match="513"):
        call(problem(1, 171, 3, 128, 128, 4))


@pytest.mark.parametrize(
    "slots, issued, needed",
    [(128, 32, 1), (1024, 32, 8), (5120, 64, 40), (4096, 32, 32)],
)
def test_surplus_products_of_the_strided_loop(slots, issued, needed):
    p = problem(1, 1, 5, slots, slots, 8)
    found = [
        steps(call(p, strided_mm1=strided).traces[0])["mm1", "nc_matmul"]
        for strided in (True, False)
    ]
    assert found == [issued, needed]


def test_counts_of_later_tiles():
    """Per later tile: copy, combine and correct the maximum, the sum, the output."""
    p = problem(1, 2, 2, 768, 768, 64, pos=[700])
    counts = steps(call(p, fa_tile_s_prior=256, strided_mm1=False).traces[0])
    assert counts["max", "activation"] == 2
    # a broadcast of two copies per tile; then the first copy and two of old maxima
    assert counts["max", "tensor_copy"] == 3 * 2 + 1 + 2
    assert counts["max", "memset"] == 1 and counts["mm1", "memset"] == 3
    assert counts["sum", "tensor_tensor"] == 2 * 2
    assert counts["accumulate", "tensor_tensor"] == 2 * 2
    assert counts["accumulate", "nc_stream_shuffle"] == 2 * 2
    assert counts["recip", "reciprocal"] == 1


def test_messages_between_two_cores():
    def messages(p, **how):
        result = call(p, lnc=2, **how)
        one = call(p, **how)
        assert difference(p, result, output(p, one)) <= 1e-6
        counts = [t.histogram().get("sendrecv", 0) for t in result.traces]
        assert counts[0] == counts[1]
        return counts[0]

    p = problem(4, 1, 5, 2048, 2048, 32)
    assert messages(p) == 3
    assert messages(p, out_in_sb=True) == 3
    for tile in (256, 512):
        assert messages(p, fa_tile_s_prior=tile) == 3
    p = problem(4, 8, 7, 256, 256, 32)
    assert messages(p) == 0 and messages(p, out_in_sb=True) == 1
    p = problem(1, 2, 3, 128, 128, 32)
    assert messages(p) == 0
    first, second = call(p, lnc=2).traces
    assert first.histogram() == second.histogram()
