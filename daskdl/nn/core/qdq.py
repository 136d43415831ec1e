"""Operators of integers as QuantizeLinear and DequantizeLinear around operators of floats.

QLinearConv is ``Q(Conv(DQ(x), DQ(w), bias))``: so ONNX defines it, and so are onnxruntime's own
operators of the domain com.microsoft (its ContribOperators.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from daskdl.nn.core.nodes import Node
from daskdl.tensor import Array

_PREFIX = "com.microsoft:"
#: Operators of onnxruntime that take (x, scale, zero) for each of what their namesakes take.
_NAMESAKES = {
    f"{_PREFIX}QLinear{name}": name
    for name in ("Add", "AveragePool", "GlobalAveragePool", "LeakyRelu", "Mul", "Sigmoid")
}
_PLAIN = {f"{_PREFIX}{name}": name for name in ("QuantizeLinear", "DequantizeLinear")}
_PRODUCTS = {"QLinearConv": "Conv", "QLinearMatMul": "MatMul", f"{_PREFIX}QGemm": "Gemm"}
_CONCAT = f"{_PREFIX}QLinearConcat"


def is_quantised(operator: str) -> bool:
    """Whether an operator takes or makes integers with a scale."""
    known = ("QuantizeLinear", "DequantizeLinear", _CONCAT)
    return operator in known or any(operator in t for t in (_NAMESAKES, _PLAIN, _PRODUCTS))


def in_qdq_form(node: Node, constants: dict[str, Array]) -> Iterator[Node]:
    """Yield the nodes that compute what an operator of integers does; others as they are.

    Constants that they take beside the node's own are put among ``constants``.
    """
    operator, inputs, (result, *_), attributes = node
    kept = tuple((k, v) for k, v in attributes if k != "channels_last")
    if operator in _PLAIN:
        yield node._replace(operator=_PLAIN[operator])
    elif operator in _NAMESAKES and not dict(attributes).get("channels_last"):
        *parts, scale, zero = inputs
        yield from _around(result, _NAMESAKES[operator], _triples(parts), (scale, zero), kept)
    elif operator == _CONCAT:
        scale, zero, *parts = inputs
        yield from _around(result, "Concat", _triples(parts), (scale, zero), kept)
    elif operator in _PRODUCTS:
        x, w, of_y, bias = _parts(operator, inputs)
        extra: tuple[str, ...] = ()
        if bias:
            floats = _bias(constants, bias, x[1], w[1], dict(attributes).get("alpha", 1.0))
            if floats is None:
                yield node
                return
            extra = (f"int8 bias of {result}",)
            constants[extra[0]] = floats
        plain = _PRODUCTS[operator]
        axis = 0 if plain == "Conv" or dict(attributes).get("transB") else -1
        yield from _around(result, plain, [(*x, -2), (*w, axis)], of_y, kept, extra)
    else:
        yield node


def _parts(operator: str, inputs: tuple[str, ...]) -> tuple[Any, Any, tuple[str, ...], str]:
    """Return x and w, each with scale and zero, scale and zero of the result, and the bias."""
    names = (*inputs, *("",) * (9 - len(inputs)))
    if operator.endswith("QGemm"):
        return names[:3], names[3:6], names[7:9], names[6]
    return names[:3], names[3:6], names[6:8], names[8]


def _triples(names: list[str]) -> list[tuple[str, ...]]:
    return [tuple(names[i : i + 3]) for i in range(0, len(names), 3)]


def _bias(constants: dict[str, Array], name: str, x: str, w: str, alpha: float) -> Array | None:
    """Return a bias of whole numbers, which has the scale of the sums, as float32."""
    bias, of_x, of_w = (constants.get(n) for n in (name, x, w))
    if bias is None or of_x is None or of_w is None:
        return None
    scale = of_x.reshape(-1).astype(np.float64) * of_w.reshape(-1) * alpha
    floats: Array = (bias * scale).astype(np.float32)
    return floats


def _around(
    result: str, operator: str, parts: list[Any], of_y: tuple[str, ...], attributes: Any,
    extra: tuple[str, ...] = (),
) -> Iterator[Node]:  # fmt: skip
    """Yield DequantizeLinear of each part (x, scale, zero, axis), the operator, QuantizeLinear."""
    floats = []
    for i, (x, scale, zero, *axis) in enumerate(parts):
        floats.append(f"float {i} of {result}")
        integers = (x, scale, zero) if zero else (x, scale)
        settings = tuple(("axis", a) for a in axis)
        yield Node("DequantizeLinear", integers, (floats[-1],), settings)
    scale, zero, *_ = of_y
    y = f"floats of {result}" if scale else result
    yield Node(operator, (*floats, *extra), (y,), attributes)
    if scale:
        yield Node("QuantizeLinear", (y, scale, zero) if zero else (y, scale), (result,))
