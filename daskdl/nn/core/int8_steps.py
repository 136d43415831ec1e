"""Steps of int8 for graphs with quantised nodes, such as onnxruntime's quantizer makes.

Operators of integers become QuantizeLinear and DequantizeLinear around operators of floats:
QLinearConv is ``Q(Conv(DQ(x), DQ(w), bias))``, as ONNX defines it, and so are onnxruntime's own
operators of the domain com.microsoft (its ContribOperators.md). Integers of 8 bits then stand for
their numbers, which kernels pass on as bytes. A convolution or product with int8 weights becomes a
step of int8. Other weights are computed once. Nodes that do not fit stay as in the file.
"""

from __future__ import annotations

import collections
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from daskdl.nn.core.nodes import Node, names_of
from daskdl.nn.operators import TABLE, Call
from daskdl.ops.int8 import has_int8, packed
from daskdl.tensor import Array

_PREFIX = "com.microsoft:"
#: Operators of onnxruntime that take (x, scale, zero) for each input of ONNX's operator.
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
    """Yield the nodes that replace an operator of integers; other nodes unchanged.

    Their additional constants are added to ``constants``.
    """
    operator, inputs, (result, *_), attributes = node
    remaining = tuple((k, v) for k, v in attributes if k != "channels_last")
    if operator in _PLAIN:
        yield node._replace(operator=_PLAIN[operator])
    elif operator in _NAMESAKES and not dict(attributes).get("channels_last"):
        *parts, scale, zero = inputs
        yield from _around(result, _NAMESAKES[operator], _triples(parts), (scale, zero), remaining)
    elif operator == _CONCAT:
        scale, zero, *parts = inputs
        yield from _around(result, "Concat", _triples(parts), (scale, zero), remaining)
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
        of_floats = _PRODUCTS[operator]
        axis = 0 if of_floats == "Conv" or dict(attributes).get("transB") else -1
        yield from _around(result, of_floats, [(*x, -2), (*w, axis)], of_y, remaining, extra)
    else:
        yield node


def _parts(operator: str, inputs: tuple[str, ...]) -> tuple[Any, Any, tuple[str, ...], str]:
    """Return x and w, each with scale and zero; scale and zero of the result; the bias."""
    names = (*inputs, *("",) * (9 - len(inputs)))
    if operator.endswith("QGemm"):
        return names[:3], names[3:6], names[7:9], names[6]
    return names[:3], names[3:6], names[6:8], names[8]


def _triples(names: list[str]) -> list[tuple[str, ...]]:
    return [tuple(names[i : i + 3]) for i in range(0, len(names), 3)]


def _bias(constants: dict[str, Array], name: str, x: str, w: str, alpha: float) -> Array | None:
    """Return as float32 a bias of integers that has the sums' scale."""
    bias, of_x, of_w = (constants.get(n) for n in (name, x, w))
    if bias is None or of_x is None or of_w is None:
        return None
    scale = of_x.reshape(-1).astype(np.float64) * of_w.reshape(-1) * alpha
    return (bias * scale).astype(np.float32)


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


#: Operators that only move or select numbers, so that integers keep their scale.
_MOVING = {"Flatten", "Identity", "MaxPool", "Reshape", "Squeeze", "Transpose", "Unsqueeze"}
#: Operators whose result is a new tensor, which others can see only by its name.
_COMPUTING = {
    "Add", "BatchNormalization", "Clip", "Concat", "Gemm", "MatMul", "Relu", "int8:Conv",
    "int8:Linear",
}  # fmt: skip


class Weights(NamedTuple):
    """Constant integers: the input of a DequantizeLinear of the file, and its settings."""

    numbers: Array
    scale: Array
    zero: Array | None
    settings: tuple[tuple[str, Any], ...]


class Steps(NamedTuple):
    """Nodes, and arrays that they read in addition to the graph's own."""

    nodes: tuple[Node, ...]
    arrays: dict[str, Array]


def steps_of(
    nodes: Sequence[Node],
    constants: Mapping[str, Array],
    parameters: Mapping[str, tuple[int, ...]],
    outputs: Sequence[str],
    opset: int,
) -> Steps:
    """Return the steps of a graph in inference; its own nodes if none is quantised."""
    if not any(is_quantised(node.operator) for node in nodes):
        return Steps(tuple(nodes), {})
    return _Steps(nodes, constants, parameters, outputs, opset).made()


class _Steps:
    """Builder of steps.

    Keys of its dicts are names of values: ``same`` has another name of the same numbers, ``bytes``
    the (scale, zero) of the value's bytes, ``weights`` its integers.
    """

    def __init__(
        self, nodes: Sequence[Node], constants: Mapping[str, Array],
        parameters: Mapping[str, tuple[int, ...]], outputs: Sequence[str], opset: int,
    ) -> None:  # fmt: skip
        self.of_graph, self.constants = constants, dict(constants)
        self.parameters, self.outputs, self.opset = parameters, set(outputs), opset
        self.arrays: dict[str, Array] = {}
        self.nodes = [part for node in nodes for part in in_qdq_form(node, self.constants)]
        self.readers: dict[str, list[Node]] = collections.defaultdict(list)
        for node in self.nodes:
            for name in names_of(node):
                self.readers[name].append(node)
        self.same: dict[str, str] = {}
        self.bytes: dict[str, tuple[float, int]] = {}
        self.weights: dict[str, Weights] = {}
        self.made_by: dict[str, Node] = {}
        self.steps: list[Node] = []

    def made(self) -> Steps:
        """Return the steps."""
        for node in self.nodes:
            self._take(node._replace(inputs=tuple(self.same.get(n, n) for n in node.inputs)))
        read = {name for step in self.steps for name in names_of(step)} | self.outputs
        for name in read:
            if name in self.weights:
                self.arrays[name] = self._floats(self.weights[name])
            elif name in self.constants and name not in self.of_graph:
                self.arrays[name] = self.constants[name]
        return Steps(tuple(self.steps), {n: a for n, a in self.arrays.items() if n in read})

    def _take(self, node: Node) -> None:
        known = [self.constants[name] for name in node.inputs if name in self.constants]
        constant = len(known) == len(node.inputs)
        if node.operator == "DequantizeLinear":
            if constant:
                numbers, scale, *zero = known
                whole = Weights(numbers, scale, zero[0] if zero else None, node.attributes)
                self.weights[node.outputs[0]] = whole
                return
            if node.inputs[0] in self.bytes:
                self._rename(node.outputs[0], node.inputs[0])
                return
        elif node.operator == "QuantizeLinear":
            if constant:
                self.constants[node.outputs[0]] = self._computed(node, known)
                return
            of_x = self._byte_scale(node)
            if of_x is not None and self._stays(node.outputs[0], of_x):
                self._round(node, of_x)
                return
        elif node.operator in _MOVING and node.inputs[0] in self.bytes:
            self.bytes[node.outputs[0]] = self.bytes[node.inputs[0]]
        self._add(self._int8(node) or node)

    def _rename(self, name: str, other: str) -> None:
        in_bodies = any(
            list(names_of(node)).count(name) > node.inputs.count(name)
            for node in self.readers[name]
        )
        if name in self.outputs or in_bodies:
            self._add(Node("Identity", (other,), (name,)))
            self.bytes[name] = self.bytes[other]
        else:
            self.same[name] = other

    def _round(self, node: Node, of_x: tuple[float, int]) -> None:
        x, y = node.inputs[0], node.outputs[0]
        if self.bytes.get(x) == of_x:
            self._rename(y, x)
            return
        attributes = (("of_x", of_x), ("alone", int(self._alone(x))))
        self._add(Node("int8:Round", (x,), (y,), attributes))
        self.bytes[y] = of_x

    def _add(self, node: Node) -> None:
        self.steps.append(node)
        self.made_by.update(dict.fromkeys(node.outputs, node))

    def _alone(self, name: str) -> bool:
        """Whether only one node reads a value, and no other name stands for it."""
        node = self.made_by.get(name)
        if node is None or name in self.outputs or len(self.readers[name]) != 1:
            return False
        if node.operator == "MaxPool":
            x = node.inputs[0]
            return len(node.outputs) == 1 and (x in self.bytes or self._alone(x))
        return node.operator in _COMPUTING

    def _byte_scale(self, node: Node) -> tuple[float, int] | None:
        """Return the scale and zero of bytes from 0 to 255; None for other integers."""
        scale, zero, *_ = *(self.constants.get(name) for name in node.inputs[1:]), None
        if scale is None or scale.dtype != np.float32 or (zero is None and len(node.inputs) > 2):
            return None
        settings = dict(node.attributes)
        if scale.size != 1 or settings.get("output_dtype") or settings.get("precision"):
            return None
        kind = np.dtype(np.uint8) if zero is None else zero.dtype
        if kind not in (np.uint8, np.int8) or (zero is not None and zero.size != 1):
            return None
        number = float(scale.reshape(-1)[0])
        if not 1e-30 < number < 1e30:
            return None
        start = 0 if zero is None else int(zero.reshape(-1)[0])
        return number, start + (128 if kind == np.int8 else 0)

    def _stays(self, name: str, of_x: tuple[float, int]) -> bool:
        """Whether all readers of integers use them as the numbers they were rounded from."""
        if name in self.outputs:
            return False
        for node in self.readers[name]:
            if node.inputs[:1] != (name,) or name in node.inputs[1:]:
                return False
            if node.operator == "DequantizeLinear":
                if self._byte_scale(node) != of_x:
                    return False
            elif node.operator not in _MOVING or len(node.outputs) != 1:
                return False
            if node.operator in _MOVING and not self._stays(node.outputs[0], of_x):
                return False
        return True

    def _floats(self, weights: Weights) -> Array:
        *parts, settings = weights
        return self._computed(Node("DequantizeLinear", (), (), settings), parts)

    def _computed(self, node: Node, inputs: Sequence[Array | None]) -> Array:
        call = Call(node.operator, dict(node.attributes), self.opset)
        return np.asarray(TABLE[node.operator](call, *inputs))

    def _int8(self, node: Node) -> Node | None:
        """Return the int8 step for a node of floats; None if the node does not fit."""
        x, *more = node.inputs
        if node.operator not in ("Conv", "Gemm", "MatMul") or x not in self.bytes:
            return None
        settings, weights = dict(node.attributes), self.weights.get(more[0])
        whole = settings.get("transA", 0), settings.get("alpha", 1.0), settings.get("beta", 1.0)
        if weights is None or whole != (0, 1, 1):
            return None
        convolution = node.operator == "Conv"
        filters = _filters(weights, 0 if convolution or settings.get("transB") else 1)
        if filters is None or filters[0].ndim != (4 if convolution else 2):
            return None
        numbers, scale = filters
        bias = self._bias(more[1], len(numbers)) if len(more) > 1 and more[1] else ""
        if bias is None:
            return None
        numbers = np.moveaxis(numbers, 1, -1)
        if not has_int8(numbers.shape, settings.get("group", 1)):
            return None
        inputs = [x, f"int8 words of {more[0]}", f"int8 scale of {more[0]}"]
        self.arrays[inputs[1]], self.arrays[inputs[2]] = packed(numbers), scale
        names = ("auto_pad", "dilations", "group", "pads", "strides")
        attributes = [(name, value) for name, value in node.attributes if name in names]
        attributes += [("shape", numbers.shape), ("of_x", self.bytes[x])]
        operator = "int8:Conv" if convolution else "int8:Linear"
        return Node(operator, (*inputs, bias), node.outputs, tuple(attributes))

    def _bias(self, name: str, length: int) -> str | None:
        """Return the name of a bias as a float32 vector; None if its dtype or size is wrong."""
        if self.parameters.get(name) == (length,):
            return name
        array = self.constants.get(name)
        if name in self.weights:
            array = self._floats(self.weights[name])
        if array is None or array.dtype != np.float32 or array.size != length:
            return None
        self.arrays[f"int8 bias of {name}"] = array.reshape(-1)
        return f"int8 bias of {name}"


def _filters(weights: Weights, axis: int) -> tuple[Array, Array] | None:
    """Return int8 weights, axis of results first, and their scales; None if they do not fit."""
    numbers, scale, zero, settings = weights
    if numbers.ndim < 2 or scale.dtype != np.float32 or numbers.dtype not in (np.int8, np.uint8):
        return None
    middle = 0 if numbers.dtype == np.int8 else 128
    if (middle if zero is not None else 0) != middle or (
        zero is not None and (zero != middle).any()
    ):
        return None
    along = int(dict(settings).get("axis", 1)) % numbers.ndim
    if scale.size > 1 and (scale.ndim != 1 or along != axis):
        return None
    filters = np.moveaxis(numbers, axis, 0)
    if scale.size not in (1, len(filters)):
        return None
    whole = filters if middle == 0 else (filters.astype(np.int16) - middle).astype(np.int8)
    return whole, np.ascontiguousarray(np.broadcast_to(scale.reshape(-1), len(filters)))
