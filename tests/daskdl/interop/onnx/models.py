"""Small ONNX files made on the spot."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest


def run_onnxruntime(model, *inputs):
    """Return onnxruntime's results of a model or of a file; skip without onnxruntime."""
    runtime = pytest.importorskip("onnxruntime")
    options = runtime.SessionOptions()
    options.log_severity_level = 3
    # Without VNNI and this option, onnxruntime cuts sums of uint8 and int8 off at 16 bits.
    options.add_session_config_entry("session.x64quantprecision", "1")
    model = model if isinstance(model, Path) else model.SerializeToString()
    session = runtime.InferenceSession(model, options)
    names = [value.name for value in session.get_inputs()]
    return session.run(None, dict(zip(names, inputs, strict=True)))


def file_of(nodes, inputs, outputs=("y",), constants=None, opset=17, domains=()):
    """Return a model; ``inputs`` are shapes of floats, or (kind, shape), by name."""
    from onnx import TensorProto, helper, numpy_helper

    kinds = {n: s if isinstance(s, tuple) else (TensorProto.FLOAT, s) for n, s in inputs.items()}
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info(n, *kind) for n, kind in kinds.items()],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in outputs],
        [numpy_helper.from_array(np.asarray(a), n) for n, a in (constants or {}).items()],
    )  # fmt: skip
    imports = [helper.make_opsetid("", opset), *(helper.make_opsetid(d, 1) for d in domains)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8)


def picture_model(opset=17, classes=3, seed=0):
    """Return a convolution, batch norm, pooling and linear layer over pictures (N, 2, 8, 8)."""
    from onnx import helper, numpy_helper

    rng = np.random.default_rng(seed)
    arrays = {
        "conv.weight": rng.normal(size=(4, 2, 3, 3)),
        "conv.bias": rng.normal(size=4),
        "scale": rng.uniform(0.5, 1.5, 4),
        "shift": rng.normal(size=4),
        "mean": rng.normal(size=4),
        "var": rng.uniform(0.5, 1.5, 4),
        "head.weight": rng.normal(size=(classes, 64)),
        "head.bias": rng.normal(size=classes),
    }
    nodes = [
        helper.make_node("Conv", ["x", "conv.weight", "conv.bias"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("BatchNormalization", ["c", "scale", "shift", "mean", "var"], ["n"]),
        helper.make_node("Relu", ["n"], ["r"]),
        helper.make_node("MaxPool", ["r"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Shape", ["p"], ["shape"]),
        helper.make_node("Constant", [], ["zero"], value=numpy_helper.from_array(np.array([0]))),
        helper.make_node("Gather", ["shape", "zero"], ["n0"]),
        helper.make_node(
            "Constant", [], ["rest"], value=numpy_helper.from_array(np.array([-1], "i8"))
        ),
        helper.make_node("Concat", ["n0", "rest"], ["target"], axis=0),
        helper.make_node("Reshape", ["p", "target"], ["features"]),
        helper.make_node("Gemm", ["features", "head.weight", "head.bias"], ["y"], transB=1),
    ]
    constants = {name: array.astype("f4") for name, array in arrays.items()}
    return file_of(nodes, {"x": ["N", 2, 8, 8]}, ["y"], constants, opset)
