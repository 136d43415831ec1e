"""Nodes of a graph: an operator, names and attributes, as plain data that a model file keeps."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from daskdl.errors import SettingsError
from daskdl.nn.operators import TABLE
from daskdl.tensor import Array

__all__ = ["Node", "Subgraph"]

#: Most elements of a constant that is kept as numbers; a longer one is kept as bytes in base64.
FEW = 64
_PURE = """
    Add AveragePool BatchNormalization Clip Concat Constant Conv ConvTranspose Div Dropout Flatten
    Gather Gemm GlobalAveragePool GlobalMaxPool HardSwish Identity LRN LayerNormalization LeakyRelu
    LogSoftmax MatMul MaxPool Mul Relu Reshape Shape Sigmoid Slice Softmax Split Squeeze Sub Tanh
    Transpose Unsqueeze int8:Conv int8:Linear int8:Round
"""
#: Operators that look at shapes alone, never at numbers: a recorded prediction may have them.
PURE_OPERATORS = frozenset(_PURE.split())


class Node(NamedTuple):
    """One step: an operator of the table, the names of its inputs and results, its settings.

    An input or result with the name ``""`` is omitted. Attributes are pairs of name and plain data;
    arrays are :func:`packed`.

    Examples
    --------
    >>> from daskdl.nn import Graph
    >>> Node("Relu", ("x",), ("y",))
    Node(operator='Relu', inputs=('x',), outputs=('y',), attributes=())
    >>> Graph([Node("Relu", ("x",), ("y",))], inputs=[("x", "float32", (None, 2))], outputs=["y"])
    Graph(x -> y: 1 nodes)
    """

    operator: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: tuple[tuple[str, Any], ...] = ()


class Subgraph(NamedTuple):
    """A body of control flow: it sees outer names and its inputs.

    Examples
    --------
    >>> double = Subgraph(("a",), ("b",), (Node("Add", ("a", "a"), ("b",)),))
    >>> double.outputs
    ('b',)
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    nodes: tuple[Node, ...]


def packed(value: Array) -> tuple[str, tuple[int, ...], Any]:
    """Return an array as plain data: its dtype, its shape, and its numbers or bytes in base64."""
    if value.size <= FEW:
        return value.dtype.name, value.shape, tuple(value.reshape(-1).tolist())
    little = np.ascontiguousarray(value, value.dtype.newbyteorder("<"))
    return value.dtype.name, value.shape, base64.b64encode(little.tobytes()).decode()


def unpacked(dtype: Any, shape: Sequence[int] = (), numbers: Any = ()) -> Array:
    """Undo :func:`packed`; a single array is returned unchanged."""
    if isinstance(dtype, np.ndarray):
        return dtype
    kind = np.dtype(dtype)
    if kind.hasobject:
        raise SettingsError(f"Graph: expected a constant of numbers, found {dtype}")
    if isinstance(numbers, str):
        flat = np.frombuffer(base64.b64decode(numbers), kind.newbyteorder("<")).astype(kind)
    else:
        flat = np.array(numbers, kind)
    array = flat.reshape(tuple(shape))
    array.setflags(write=False)
    return array


def node_of(parts: Any) -> Node:
    """Return the node that plain data describes."""
    operator, inputs, outputs, *rest = parts
    attributes = tuple((name, _attribute(value)) for name, value in (rest[0] if rest else ()))
    return Node(operator, tuple(inputs), tuple(outputs), attributes)


def _attribute(value: Any) -> Any:
    """Return an attribute: in plain data, arrays and bodies are tuples that begin with a mark."""
    if not isinstance(value, (list, tuple)) or isinstance(value, Subgraph):
        return value
    if len(value) == 4 and value[0] == "array":
        return unpacked(*value[1:])
    if len(value) == 4 and value[0] == "graph":
        return Subgraph(tuple(value[1]), tuple(value[2]), tuple(map(node_of, value[3])))
    return tuple(value)


def _plain(value: Any) -> Any:
    if isinstance(value, Subgraph):
        return ("graph", value.inputs, value.outputs, tuple(map(plain_node, value.nodes)))
    return ("array", *packed(value)) if isinstance(value, np.ndarray) else value


def plain_node(node: Node) -> Node:
    """Return a node whose attributes are plain data."""
    return node._replace(attributes=tuple((n, _plain(v)) for n, v in node.attributes))


def names_of(node: Node) -> Iterator[str]:
    """Yield the names that a node reads, and the outer names that its bodies read."""
    yield from node.inputs
    for _, value in node.attributes:
        if isinstance(value, Subgraph):
            yield from value.outputs
            for inner in value.nodes:
                yield from names_of(inner)


def check_nodes(nodes: Sequence[Node], outputs: Sequence[str], known: set[str]) -> None:
    known = set(known)
    for node in nodes:
        if node.operator not in TABLE:
            raise SettingsError(
                f"Graph: node {', '.join(node.outputs)}: there is no operator {node.operator!r}"
            )
        missing = [name for name in node.inputs if name and name not in known]
        if missing or not node.outputs:
            raise SettingsError(
                f"Graph: {node.operator} {', '.join(node.outputs)}: expected inputs that are "
                f"computed before, found {', '.join(missing) or 'no result'}"
            )
        for _, value in node.attributes:
            if isinstance(value, Subgraph):
                check_nodes(value.nodes, value.outputs, known | set(value.inputs))
        known.update(node.outputs)
    missing = [name for name in outputs if name not in known]
    if missing:
        raise SettingsError(f"Graph: nothing computes {', '.join(missing)}")


def last_uses(nodes: Sequence[Node], outputs: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Return for each node the results that no later node reads; their memory is then free."""
    made = {name for node in nodes for name in node.outputs if name} - set(outputs)
    last: dict[str, int] = {}
    for i, node in enumerate(nodes):
        for name in (*names_of(node), *node.outputs):
            if name in made:
                last[name] = i
    done: list[list[str]] = [[] for _ in nodes]
    for name, i in last.items():
        done[i].append(name)
    return tuple(map(tuple, done))


def is_pure(node: Node) -> bool:
    """Return whether an operator reads only shapes, not numbers."""
    if node.operator == "Cast":  # floats that become whole numbers could be shapes later
        return dict(node.attributes).get("to") in (1, 7)
    return node.operator in PURE_OPERATORS
