"""Say how other libraries are asked for attention, each in its own way (book).

Every function here takes arrays ``[batch, seq, heads, width]``, lays them out as its
library likes them before any clock starts, and returns the call that is timed and
the function that brings its result back to that layout.
"""

import os
from collections.abc import Callable

import numpy as np

__all__ = ["LIBRARIES"]

Call = tuple[Callable[[], object], Callable[[object], np.ndarray]]


def torch_call(q, k, v, *, causal: bool, cores: int) -> Call:
    """PyTorch: ``scaled_dot_product_attention``, heads first."""
    import torch

    torch.set_num_threads(cores)
    tensors = [torch.from_numpy(x).transpose(1, 2).contiguous() for x in (q, k, v)]

    def attend():
        return torch.nn.functional.scaled_dot_product_attention(
            *tensors, is_causal=causal, enable_gqa=True
        )

    return attend, lambda out: out.transpose(1, 2).numpy()


def onnxruntime_call(q, k, v, *, causal: bool, cores: int) -> Call:
    """ONNX Runtime: the operator ``Attention`` of opset 23, heads first."""
    import onnx
    import onnxruntime

    tensors = dict(
        zip(
            "qkv",
            (np.ascontiguousarray(x.swapaxes(1, 2)) for x in (q, k, v)),
            strict=True,
        )
    )
    shapes = {name: x.shape for name, x in tensors.items()}
    shapes["out"] = (*shapes["q"][:3], shapes["v"][3])
    infos = {
        name: onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)
        for name, shape in shapes.items()
    }
    node = onnx.helper.make_node(
        "Attention", ["q", "k", "v"], ["out"], is_causal=causal
    )
    graph = onnx.helper.make_graph(
        [node], "attention", [infos[name] for name in "qkv"], [infos["out"]]
    )
    opset = onnx.helper.make_opsetid("", 23)
    model = onnx.helper.make_model(graph, opset_imports=[opset], ir_version=10)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = cores
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return lambda: session.run(None, tensors)[0], lambda out: out.swapaxes(1, 2)


def jax_call(q, k, v, *, causal: bool, cores: int) -> Call:
    """JAX: ``jax.nn.dot_product_attention``, compiled."""
    # before the first import, which counts the cores once
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    import jax

    tensors = [jax.numpy.asarray(x) for x in (q, k, v)]
    attend = jax.jit(
        lambda q, k, v: jax.nn.dot_product_attention(q, k, v, is_causal=causal)
    )
    return lambda: attend(*tensors).block_until_ready(), np.asarray


#: By the name of the module that has to be installed.
LIBRARIES: dict[str, Callable[..., Call]] = {
    "torch": torch_call,
    "onnxruntime": onnxruntime_call,
    "jax": jax_call,
}
