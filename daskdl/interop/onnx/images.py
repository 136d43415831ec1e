"""ONNX nodes of operations on images and sequences, (N, C, ...) in the file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from daskdl.errors import SettingsError
from daskdl.interop.building import Value
from daskdl.interop.onnx.emitter import Emitter
from daskdl.interop.onnx.operations import writer


def _pads(pad: Sequence[int]) -> list[int]:
    """Return (before, before, behind, behind) of (before, behind, before, behind)."""
    return [*pad[::2], *pad[1::2]]


def _filters(emit: Emitter, weight: Any) -> str:
    """Return filters with channels second: arrays are transposed now, other values by a node."""
    if weight.name in emit.arrays:
        turned = f"{weight.name}/first"
        if turned not in emit.arrays:
            emit.arrays[turned] = np.ascontiguousarray(np.moveaxis(emit.arrays[weight.name], -1, 1))
        return turned
    return emit.second(weight).name


def _steps(value: Any, axes: int) -> list[int]:
    return [value] * axes if isinstance(value, int) else list(value)


def attributes_of(settings: Any, axes: int) -> dict[str, Any]:
    """Return ONNX's attributes for the settings of a convolution."""
    return {
        "strides": _steps(settings.get("stride", 1), axes),
        "pads": _pads(settings.get("pad", (0, 0) * axes)),
        "dilations": _steps(settings.get("dilation", 1), axes),
        "group": settings.get("groups", 1),
    }


@writer("conv1d", "conv2d", "conv_transpose2d")
def conv(emit: Emitter, inputs: Any, settings: Any, shapes: Any, name: str) -> Value:
    """Convolutions."""
    x, weight, bias = inputs
    attributes = attributes_of(settings, x.rank - 2)
    if name == "conv_transpose2d":
        attributes["output_padding"] = list(settings.get("output_pad", (0, 0)))
    operator = "ConvTranspose" if name == "conv_transpose2d" else "Conv"
    y = emit.node(operator, emit.second(x).name, _filters(emit, weight), bias, **attributes)
    return Value(y, x.rank, True)


@writer("_inference")
def batch_norm(emit: Emitter, inputs: Any, settings: Any, shapes: Any) -> Value:
    """Batch normalisation, with an optional residual and ReLU behind it."""
    x, mean, variance, weight, bias, residual = inputs
    channels = shapes[0][0][-1]
    weight = np.ones(channels, np.float32) if weight is None else weight
    bias = np.zeros(channels, np.float32) if bias is None else bias
    first = emit.second(x) if x.rank > 2 else x
    name = emit.node(
        "BatchNormalization", first.name, weight, bias, mean, variance,
        epsilon=settings.get("eps", 1e-5),
    )  # fmt: skip
    if residual is not None:
        other = emit.second(residual) if x.rank > 2 else residual
        name = emit.node("Add", name, other.name)
    if settings.get("relu"):
        name = emit.node("Relu", name)
    return Value(name, x.rank, x.rank > 2)


@writer("group_norm")
def group_norm(emit: Emitter, inputs: Any, settings: Any, shapes: Any) -> Value:
    """Group normalisation: normalise each group as one channel, then scale each channel."""
    x, weight, bias = inputs
    groups, eps = settings["groups"], settings.get("eps", 1e-5)
    channels = shapes[0][0][-1]
    first = emit.second(x).name
    flat = emit.node("Reshape", first, emit.integers(0, groups, -1))
    ones, none = np.ones(groups, np.float32), np.zeros(groups, np.float32)
    y = emit.node("InstanceNormalization", flat, ones, none, epsilon=eps)
    y = emit.node("Reshape", y, emit.node("Shape", first))
    behind = emit.integers(channels, *(1,) * (x.rank - 2))
    if weight is not None:
        y = emit.node("Mul", y, emit.node("Reshape", weight, behind))
    if bias is not None:
        y = emit.node("Add", y, emit.node("Reshape", bias, behind))
    return Value(y, x.rank, x.rank > 2)


@writer("max_pool2d", "avg_pool2d")
def pool(emit: Emitter, inputs: Any, settings: Any, shapes: Any, name: str) -> Value:
    """Pooling over windows."""
    x, kernel = inputs[0], settings["kernel_size"]
    attributes: dict[str, Any] = {
        "kernel_shape": list(kernel),
        "strides": list(settings.get("stride") or kernel),
        "pads": _pads(settings.get("pad", (0, 0, 0, 0))),
        "ceil_mode": int(settings.get("ceil_mode", False)),
    }
    if name == "avg_pool2d":
        attributes["count_include_pad"] = int(settings.get("count_include_pad", True))
    operator = "MaxPool" if name == "max_pool2d" else "AveragePool"
    return Value(emit.node(operator, emit.second(x).name, **attributes), x.rank, True)


@writer("global_avg_pool2d", "global_max_pool2d")
def global_pool(emit: Emitter, inputs: Any, settings: Any, shapes: Any, name: str) -> Value:
    """Pooling over whole images, (N, H, W, C) -> (N, C)."""
    operator = "GlobalAveragePool" if name == "global_avg_pool2d" else "GlobalMaxPool"
    y = emit.node(operator, emit.second(inputs[0]).name)
    return Value(emit.node("Flatten", y, axis=1), 2)


@writer("local_response_norm")
def local_response_norm(emit: Emitter, inputs: Any, settings: Any, shapes: Any) -> Value:
    """Local response normalisation."""
    x = inputs[0]
    attributes = {"alpha": settings.get("alpha", 1e-4), "beta": settings.get("beta", 0.75)}
    y = emit.node(
        "LRN", emit.second(x).name, size=settings.get("size", 5), bias=settings.get("k", 1.0),
        **attributes,
    )  # fmt: skip
    return Value(y, x.rank, True)


@writer("convlstm")
def convlstm(emit: Emitter, inputs: Any, settings: Any, shapes: Any) -> Any:
    """Unroll a ConvLSTM step by step."""
    x, h, c, weight_input, weight_state, bias = inputs
    outputs, states = shapes[0], shapes[1]
    steps, channels = outputs[0][1], states[0][-1]
    h, c = (emit.second(v).name for v in (h, c))

    def same(name: str, weight: Any, shift: Any) -> str:
        if weight.name not in emit.arrays:
            raise SettingsError("convlstm: expected weights of the model")
        half = emit.arrays[weight.name].shape[1] // 2  # of a square kernel
        return str(emit.node("Conv", name, _filters(emit, weight), shift, pads=[half] * 4))

    hs = []
    for t in range(steps):
        total = same(h, weight_state, bias)
        if x is not None:
            image = emit.node("Gather", x, np.int64(t), axis=1)
            image = emit.second(Value(image, 4)).name
            total = emit.node("Add", total, same(image, weight_input, None))
        sizes = emit.integers(*(channels,) * 4)
        i, f, g, o = emit.node("Split", total, sizes, results=4, axis=1)
        i, f, o = (emit.node("Sigmoid", gate) for gate in (i, f, o))
        new = emit.node("Mul", i, emit.node("Tanh", g))
        c = emit.node("Add", emit.node("Mul", f, c), new)
        h = emit.node("Mul", o, emit.node("Tanh", c))
        hs.append(emit.node("Unsqueeze", emit.last(Value(h, 4, True)).name, emit.integers(1)))
    together = emit.node("Concat", *hs, axis=1)
    return Value(together, 5), Value(h, 4, True), Value(c, 4, True)


@writer("lstm", "gru", "rnn")
def recurrent(emit: Emitter, inputs: Any, settings: Any, shapes: Any, name: str) -> Any:
    """LSTM, GRU or RNN over (N, T, C), with the gates in ONNX's order."""
    lengths = settings.get("lengths")
    x, *states = inputs[: 3 if name == "lstm" else 2]
    weight, state_weight, *rest = inputs[len(states) + 1 :]
    order = {"lstm": (0, 3, 1, 2), "gru": (1, 0, 2), "rnn": (0,)}[name]
    channels = shapes[1][0][-1]

    def gates(value: Any) -> str:
        parts = emit.node(
            "Split", value, emit.integers(*(channels,) * len(order)), results=len(order), axis=0
        )
        parts = parts if isinstance(parts, tuple) else (parts,)
        whole = emit.node("Concat", *(parts[i] for i in order), axis=0)
        return str(emit.node("Unsqueeze", whole, emit.integers(0)))

    zeros = np.zeros(len(order) * channels, np.float32)
    pair = rest[:2] if name == "gru" else (rest[0], None)
    bias = emit.node("Concat", *(gates(zeros if b is None else b) for b in pair), axis=1)
    attributes: dict[str, Any] = {"hidden_size": channels}
    attributes["direction"] = "reverse" if settings.get("reverse") else "forward"
    if name == "gru":
        attributes["linear_before_reset"] = 1
    if name == "rnn" and settings.get("nonlinearity") == "relu":
        attributes["activations"] = ["Relu"]
    first = [None if s is None else emit.node("Unsqueeze", s, emit.integers(0)) for s in states]
    peepholes = None
    if name == "lstm" and rest[1] is not None:
        rows = emit.node("Gather", rest[1], np.array([0, 2, 1]), axis=0)
        peepholes = emit.node("Reshape", rows, emit.integers(1, 3 * channels))
    steps_first = emit.node("Transpose", x, perm=[1, 0, 2])
    sizes = None if lengths is None else emit.node("Cast", lengths, to=6)
    ys, *last = emit.node(
        name.upper(), steps_first, gates(weight), gates(state_weight), bias, sizes, *first,
        *([] if peepholes is None else [None] * (2 - len(first)) + [peepholes]),
        results=len(states) + 1, **attributes,
    )  # fmt: skip
    y = emit.node("Transpose", emit.node("Squeeze", ys, emit.integers(1)), perm=[1, 0, 2])
    last_states = tuple(Value(emit.node("Squeeze", v, emit.integers(0)), 2) for v in last)
    return Value(y, 3), *last_states
