"""ONNX writers for models that read integer inputs outside operations; others are traced."""

from __future__ import annotations

from typing import Any

import numpy as np

from daskdl.interop.building import Value
from daskdl.interop.onnx.emitter import Emitter
from daskdl.interop.onnx.images import conv, recurrent
from daskdl.interop.onnx.operations import embedding, linear


def _ends(
    name: str, result: str, shape: list[Any], output: list[Any]
) -> tuple[list[Any], list[Any]]:
    from onnx import TensorProto, helper

    return (
        [helper.make_tensor_value_info(name, TensorProto.INT64, shape)],
        [helper.make_tensor_value_info(result, TensorProto.FLOAT, output)],
    )


def ncf(emit: Emitter, model: Any, state: dict[str, Value], shapes: Any) -> Any:
    """NeuMF: pairs (N, 2) of a user's id and an item's id."""
    users, items = (Value(emit.node("Gather", "pairs", np.int64(i), axis=1), 1) for i in (0, 1))
    tables = {
        name: embedding(emit, (state[f"{name}.weight"], ids), {}, [((2, 1),) * 2])
        for name, ids in (
            ("user_factors", users), ("item_factors", items),
            ("user_features", users), ("item_features", items),
        )
    }  # fmt: skip
    product = emit.node("Mul", tables["user_factors"], tables["item_factors"])
    y = Value(emit.node("Concat", tables["user_features"], tables["item_features"], axis=1), 2)
    for i in range(len(model.linear)):
        y = _linear(emit, state, f"linear.{i}", y, relu=True)
    y = _linear(emit, state, "head", Value(emit.node("Concat", product, y, axis=1), 2))
    return _ends("pairs", emit.node("Squeeze", y, emit.integers(1)), ["N", 2], ["N"])


def _linear(
    emit: Emitter, state: dict[str, Value], name: str, x: Value, relu: bool = False
) -> Value:
    y = linear(emit, (x, state[f"{name}.weight"], state[f"{name}.bias"]), {}, [((2, 2),) * 2])
    return Value(emit.node("Relu", y), 2) if relu else Value(y.name, 2)


def text(emit: Emitter, model: Any, state: dict[str, Value], shapes: Any) -> Any:
    """TextClassifier: ids (N, T); zeros at the end are not read."""
    filled = emit.node("Cast", emit.node("Not", emit.node("Equal", "ids", np.int64(0))), to=7)
    steps = emit.node("Shape", "ids", start=1, end=2)
    count = emit.node("Squeeze", steps, emit.integers(0))
    places = emit.node("Range", np.int64(1), emit.node("Add", count, np.int64(1)), np.int64(1))
    lengths = emit.node("ReduceMax", emit.node("Mul", filled, places), emit.integers(1), keepdims=0)
    padding = {"padding": model.embedding.padding_index}
    vectors = embedding(
        emit, (state["embedding.weight"], Value("ids", 2)), padding, [((2, 2, 2),) * 2]
    )
    if "encoder.weight" in state:
        y = _convolved(emit, model, state, vectors, lengths, places)
    else:
        y = _recurrent(emit, model, state, vectors, lengths)
    y = _linear(emit, state, "hidden", y, relu=True)
    result = emit.node("LogSoftmax", _linear(emit, state, "head", y), axis=1)
    return _ends("ids", result, ["N", "T"], ["N", model.head.weight.shape[0]])


def _recurrent(
    emit: Emitter, model: Any, state: dict[str, Value], vectors: Value, lengths: str
) -> Value:
    name = type(model.encoder).__name__.lower()
    weights = [state[f"encoder.weight_{kind}_0"] for kind in ("input", "state")]
    biases = [state[f"encoder.bias_{k}_0"] for k in ("input", "state")] if name == "gru" else [
        state["encoder.bias_0"], None
    ]  # fmt: skip
    states = [None, None] if name == "lstm" else [None]
    channels = model.encoder.channels
    results = recurrent(
        emit, (vectors, *states, *weights, *biases), {"lengths": lengths},
        [((2, 2, channels),) * 2, ((2, channels),) * 2], name,
    )  # fmt: skip
    return Value(results[1].name, 2)


def _convolved(
    emit: Emitter, model: Any, state: dict[str, Value], vectors: Value, lengths: str, places: str
) -> Value:
    k = state["encoder.weight"]
    size = emit.arrays[k.name].shape[1]
    before = (size - 1) // 2
    y = conv(
        emit, (vectors, k, state["encoder.bias"]), {"pad": (before, size - 1 - before)},
        [((2, 2, 2),) * 2], "conv1d",
    )  # fmt: skip
    positive = emit.node("Relu", y.name)
    inside = emit.node("LessOrEqual", places, emit.node("Unsqueeze", lengths, emit.integers(1)))
    inside = emit.node("Unsqueeze", emit.node("Cast", inside, to=1), emit.integers(1))
    masked = emit.node("Mul", positive, inside)
    return Value(emit.node("ReduceMax", masked, emit.integers(2), keepdims=0), 2)


WRITERS: dict[str, Any] = {"NeuMF": ncf, "TextClassifier": text}
