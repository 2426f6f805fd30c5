"""What `flashlib` exports, and the signatures that the contract fixes."""

import inspect

import flashlib

EXPORTED = """
ArgumentError AttentionOutput Backend BankError CapacityError Choice ContiguousCache
DTypeError FlashError FreeSizeError MachineError OutOfBoundsError PagedCache
PartitionError PlacementError Refused RingCache ShapeError Tracing UninitializedError
available_backends flash_attention flash_attention_decode flash_attention_paged
flash_attention_varlen get_backend materialized_attention merge_heads merge_states
split_heads
""".split()

SIGNATURES = {
    "materialized_attention": "q, k, v, *, causal=False, window=None, scale=None, "
    "softcap=None, mask=None, bias=None, sink=None, dtype=None",
    "flash_attention": "q, k, v, *, causal=False, window=None, scale=None, "
    "softcap=None, mask=None, bias=None, sink=None, backend='auto', "
    "algorithm='auto', tile=None",
    "flash_attention_varlen": "q, k, v, *, cu_seqlens_q, cu_seqlens_k, causal=False, "
    "window=None, scale=None, softcap=None, sink=None, backend='auto'",
    "flash_attention_decode": "q, k_cache, v_cache, *, cache_seqlens, causal=True, "
    "window=None, scale=None, softcap=None, sink=None, num_splits=None, "
    "backend='auto'",
    "flash_attention_paged": "q, k_pages, v_pages, *, block_table, cache_seqlens, "
    "causal=True, window=None, scale=None, softcap=None, sink=None, "
    "num_splits=None, backend='auto'",
    "merge_states": "a, b",
    "split_heads": "x, n_heads",
    "merge_heads": "x",
    "available_backends": "",
    "get_backend": "backend='auto'",
}


def test_exported_names():
    assert sorted(flashlib.__all__) == sorted(EXPORTED)
    assert all(hasattr(flashlib, name) for name in EXPORTED)


def plain(function):
    parameters = inspect.signature(function).parameters.values()
    bare = [p.replace(annotation=inspect.Parameter.empty) for p in parameters]
    return str(inspect.Signature(bare))[1:-1]


def test_signatures():
    for name, signature in SIGNATURES.items():
        assert plain(getattr(flashlib, name)) == signature


def test_results_are_named():
    assert flashlib.AttentionOutput._fields == ("out", "lse")
    assert flashlib.Choice._fields == ("algorithm", "reason")
