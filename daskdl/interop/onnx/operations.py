"""ONNX nodes of operations of daskdl.ops: elementwise, products, reductions, norms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from daskdl.interop.building import Value
from daskdl.interop.onnx.emitter import Emitter
from daskdl.nn.operators.elementwise import FUNCTIONS

#: From (emitter, inputs, settings, shapes of results for both batches) to values of the results.
Writer = Callable[..., Any]
WRITERS: dict[str, Writer] = {}


def writer(*names: str) -> Callable[[Writer], Writer]:
    """Register a function that writes these operations."""

    def register(function: Writer) -> Writer:
        WRITERS.update(dict.fromkeys(names, function))
        return function

    return register


def _one(emit: Emitter, operator: str, x: Value, *more: Any, **attributes: Any) -> Value:
    """Write an elementwise operator; the result keeps the input's layout."""
    return Value(emit.node(operator, x.name, *more, **attributes), x.rank, x.second)


def _elementwise(operator: str) -> Writer:
    return lambda emit, inputs, settings, shapes: _one(emit, operator, inputs[0])


WRITERS.update({f.__name__: _elementwise(name) for name, f in FUNCTIONS.items()})
WRITERS["relu"] = _elementwise("Relu")


@writer("elu", "leaky_relu")
def slope(emit: Emitter, inputs: Any, settings: Any, shapes: Any, name: str) -> Value:
    """ELU or leaky ReLU; their only setting is ONNX's alpha."""
    operator, default = {"elu": ("Elu", 1.0), "leaky_relu": ("LeakyRelu", 0.2)}[name]
    return _one(emit, operator, inputs[0], alpha=next(iter(settings.values()), default))


_BINARY = {
    "add": "Add", "divide": "Div", "maximum": "Max", "minimum": "Min", "multiply": "Mul",
    "pow": "Pow", "subtract": "Sub",
}  # fmt: skip


def _binary(operator: str) -> Writer:
    def write(emit: Emitter, inputs: Any, settings: Any, shapes: Any) -> Value:
        a, b = inputs
        ndim = len(shapes[0][0])
        if a.rank == b.rank == ndim and a.second and b.second:
            return Value(emit.node(operator, a.name, b.name), ndim, True)
        return Value(emit.node(operator, a, b), ndim)

    return write


WRITERS.update({name: _binary(operator) for name, operator in _BINARY.items()})


@writer("relu6", "hard_tanh", "clip")
def clip(emit: Emitter, inputs: Any, settings: Any, shapes: Any) -> Value:
    """Clip; ReLU6 and hard tanh are special cases."""
    low, high = settings.get("low"), settings.get("high")
    if not settings:
        low, high = (0.0, 6.0)
    limits = [None if v is None else np.float32(v) for v in (low, high)]
    return _one(emit, "Clip", inputs[0], *limits)


@writer("gelu")
def gelu(emit: Emitter, inputs: Any, settings: Any, shapes: Any) -> Value:
    """Compose GELU from simpler operators: Gelu needs version 20."""
    x = inputs[0]
    if settings.get("approximate", "none") == "none":
        inner = _one(emit, "Erf", _one(emit, "Mul", x, np.float32(0.5**0.5)))
    else:
        cube = _one(emit, "Mul", x, _one(emit, "Mul", x, x.name).name)
        total = _one(emit, "Add", x, _one(emit, "Mul", cube, np.float32(0.044715)).name)
        inner = _one(emit, "Tanh", _one(emit, "Mul", total, np.float32((2 / np.pi) ** 0.5)))
    half = _one(emit, "Mul", x, np.float32(0.5))
    return _one(emit, "Mul", half, _one(emit, "Add", inner, np.float32(1)).name)


@writer("silu")
def silu(emit: Emitter, inputs: Any, settings: Any, shapes: Any) -> Value:
    """Multiply x by its sigmoid."""
    return _one(emit, "Mul", inputs[0], _one(emit, "Sigmoid", inputs[0]).name)


@writer("hard_sigmoid")
def hard_sigmoid(emit: Emitter, inputs: Any, settings: Any, shapes: Any) -> Value:
    """Compute x / 6 + 1 / 2, limited to 0 to 1."""
    return _one(emit, "HardSigmoid", inputs[0], alpha=1 / 6, beta=0.5)


@writer("prelu")
def prelu(emit: Emitter, inputs: Any, settings: Any, shapes: Any) -> Value:
    """PRelu with a slope for each channel; channels are last."""
    x, slope = inputs
    return Value(emit.node("PRelu", x, slope), x.rank)


@writer("square")
def square(emit: Emitter, inputs: Any, settings: Any, shapes: Any) -> Value:
    """Multiply x by itself."""
    return _one(emit, "Mul", inputs[0], inputs[0].name)


@writer("power")
def power(emit: Emitter, inputs: Any, settings: Any, shapes: Any) -> Value:
    """Raise x to the power of a number."""
    return _one(emit, "Pow", inputs[0], np.float32(settings["exponent"]))


@writer("threshold")
def threshold(emit: Emitter, inputs: Any, settings: Any, shapes: Any) -> Value:
    """Keep x above a threshold, and use a value elsewhere."""
    x = inputs[0]
    above = emit.node("Greater", x.name, np.float32(settings.get("threshold", 0)))
    result = emit.node("Where", above, x.name, np.float32(settings.get("value", 0)))
    return Value(result, x.rank, x.second)


@writer("where")
def where(emit: Emitter, inputs: Any, settings: Any, shapes: Any) -> Value:
    """Choose between two; the condition is a constant, computed outside the graph."""
    condition, a, b = inputs
    chosen = emit.node("Cast", condition, to=9)
    return Value(emit.node("Where", chosen, a, b), len(shapes[0][0]))


@writer("cast")
def cast(emit: Emitter, inputs: Any, settings: Any, shapes: Any) -> Value:
    """Convert to another dtype."""
    from onnx import helper

    return _one(
        emit, "Cast", inputs[0], to=helper.np_dtype_to_tensor_dtype(np.dtype(settings["dtype"]))
    )


@writer("dropout")
def dropout(emit: Emitter, inputs: Any, settings: Any, shapes: Any) -> Value:
    """Return the input: this is inference."""
    return inputs[0]


@writer("matmul")
def matmul(emit: Emitter, inputs: Any, settings: Any, shapes: Any) -> Value:
    """Matrix product."""
    return Value(emit.node("MatMul", *inputs), len(shapes[0][0]))


@writer("linear")
def linear(emit: Emitter, inputs: Any, settings: Any, shapes: Any) -> Value:
    """Write Gemm for inputs of two axes, otherwise MatMul and Add."""
    x, weight, bias = inputs
    if x.rank == 2:
        return Value(emit.node("Gemm", x, weight, bias, transB=1), 2)
    turned = emit.node("Transpose", weight, perm=[1, 0])
    y = emit.node("MatMul", x, turned)
    return Value(y if bias is None else emit.node("Add", y, bias), x.rank)


@writer("einsum")
def einsum(emit: Emitter, inputs: Any, settings: Any, shapes: Any) -> Value:
    """Sum products."""
    return Value(emit.node("Einsum", *inputs, equation=settings["equation"]), len(shapes[0][0]))


@writer("sum", "mean", "prod")
def reduce(emit: Emitter, inputs: Any, settings: Any, shapes: Any, name: str) -> Value:
    """Reductions over axes, by default all."""
    axes = settings.get("axis")
    axes = () if axes is None else (axes,) if isinstance(axes, int) else axes
    operator = {"sum": "ReduceSum", "mean": "ReduceMean", "prod": "ReduceProd"}[name]
    chosen = emit.integers(*axes) if axes else None
    y = emit.node(operator, inputs[0], chosen, keepdims=int(settings.get("keepdims", False)))
    return Value(y, len(shapes[0][0]))


@writer("amax", "amin")
def extreme(emit: Emitter, inputs: Any, settings: Any, shapes: Any, name: str) -> Value:
    """Take the maximum or minimum along an axis."""
    operator = "ReduceMax" if name == "amax" else "ReduceMin"
    axis = emit.integers(settings.get("axis", -1))
    y = emit.node(operator, inputs[0], axis, keepdims=int(settings.get("keepdims", False)))
    return Value(y, len(shapes[0][0]))


@writer("softmax", "log_softmax")
def softmax(emit: Emitter, inputs: Any, settings: Any, shapes: Any, name: str) -> Value:
    """Softmax or its logarithm."""
    operator = "Softmax" if name == "softmax" else "LogSoftmax"
    return Value(emit.node(operator, inputs[0], axis=settings.get("axis", -1)), inputs[0].rank)


@writer("cumsum")
def cumsum(emit: Emitter, inputs: Any, settings: Any, shapes: Any) -> Value:
    """Cumulative sum along an axis."""
    flags: dict[str, Any] = {k: int(settings.get(k, False)) for k in ("exclusive", "reverse")}
    return Value(
        emit.node("CumSum", inputs[0], np.int64(settings["axis"]), **flags), inputs[0].rank
    )


@writer("embedding")
def embedding(emit: Emitter, inputs: Any, settings: Any, shapes: Any) -> Value:
    """Rows of a table; rows for the padding's id are zeros."""
    table, ids = inputs
    rows = emit.node("Gather", table, ids, axis=0)
    padding = settings.get("padding")
    if padding is not None:
        gone = emit.node("Equal", ids, np.int64(padding))
        gone = emit.node("Unsqueeze", gone, emit.integers(-1))
        rows = emit.node("Where", gone, np.float32(0), rows)
    return Value(rows, len(shapes[0][0]))


@writer("layer_norm")
def layer_norm(emit: Emitter, inputs: Any, settings: Any, shapes: Any) -> Value:
    """Normalisation over the last axes."""
    x, weight, bias = inputs
    axes = settings.get("axes", 1)
    if weight is None:
        weight = np.ones(shapes[0][0][len(shapes[0][0]) - axes :], np.float32)
    eps = settings.get("eps", 1e-5)
    y = emit.node("LayerNormalization", x, weight, bias, axis=-axes, epsilon=eps)
    return Value(y, x.rank)


@writer("normalize")
def normalize(emit: Emitter, inputs: Any, settings: Any, shapes: Any) -> Value:
    """Divide vectors by their Euclidean norm."""
    x = inputs[0]
    squares = emit.node("ReduceSum", emit.node("Mul", x, x), emit.integers(-1), keepdims=1)
    least = np.array(settings.get("eps", 1e-12), np.float32)
    length = emit.node("Max", emit.node("Sqrt", squares), least)
    return Value(emit.node("Div", x, length), x.rank)
