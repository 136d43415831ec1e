"""A :class:`daskdl.nn.Graph` made node by node, by readers of files of other formats."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np

from daskdl.nn.graph import Graph, Node
from daskdl.tensor import Array


class Builder:
    """Nodes, weights and constants, each under a name of its own.

    Names of results are those of the file where they are free. Filters lie channels last, as those
    of :class:`daskdl.nn.Conv2d`.
    """

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.inputs: list[tuple[str, str, tuple[int | None, ...] | None]] = []
        self.arrays: dict[str, Array] = {}
        self.buffers: set[str] = set()
        self.constants: dict[str, Array] = {}
        self._taken: set[str] = set()
        self._known: dict[tuple[Any, ...], str] = {}

    def free(self, name: str) -> str:
        """Return a name that nothing has yet, and take it."""
        found, n = name or "value", 1
        while found in self._taken:
            n += 1
            found = f"{name}_{n}"
        self._taken.add(found)
        return found

    def input(self, name: str, shape: tuple[int | None, ...] | None, dtype: str = "float32") -> str:
        """Add an input."""
        name = self.free(name)
        self.inputs.append((name, dtype, shape))
        return name

    def node(self, operator: str, *inputs: str, name: str = "", **attributes: Any) -> str:
        """Add a node with one result; return the result's name."""
        return self.nodes_of(operator, inputs, [name or operator.lower()], **attributes)[0]

    def nodes_of(
        self, operator: str, inputs: Sequence[str], names: Sequence[str], **attributes: Any
    ) -> list[str]:
        """Add a node with several results; return their names."""
        results = [self.free(name) for name in names]
        given = tuple((k, v) for k, v in attributes.items() if v is not None)
        self.nodes.append(Node(operator, tuple(inputs), tuple(results), given))
        return results

    def constant(self, value: Any, dtype: Any = np.float32) -> str:
        """Add numbers that are not trained; equal ones once."""
        array = np.asarray(value, dtype)
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._known:
            self._known[key] = self.free("constant")
            self.constants[self._known[key]] = array
        return self._known[key]

    def integers(self, *values: int) -> str:
        """Add a vector of integers, such as a shape."""
        return self.constant(values, np.int64)

    def parameter(self, name: str, array: Array) -> str:
        """Add trainable numbers."""
        name = self.free(attribute_name(name, self._taken))
        self.arrays[name] = array
        return name

    def filters(self, name: str, array: Array) -> str:
        """Add filters (M, C, ...), which are kept as (M, ..., C); return the name of their view."""
        name = self.parameter(name, np.moveaxis(array, 1, -1))
        view = self.free(f"{name}/last")
        self.nodes.append(channels_second(name, view, array.ndim))
        return view

    def buffer(self, name: str, array: Array) -> str:
        """Add running statistics."""
        name = self.parameter(name, array)
        self.buffers.add(name)
        return name

    def transposed(self, name: str, order: Sequence[int]) -> str:
        """Add a view with its axes in another order, once."""
        key = ("Transpose", name, *order)
        if key not in self._known:
            turned = self.node("Transpose", name, name=f"{name}/turned", perm=tuple(order))
            self._known[key] = turned
        return self._known[key]

    def graph(self, outputs: Iterable[str], opset: int = 21) -> Graph:
        """Return the graph with its weights; what no output needs is left out."""
        outputs = tuple(outputs)
        needed, nodes = set(outputs), []
        for node in reversed(self.nodes):
            if needed & set(node.outputs):
                nodes.append(node)
                needed.update(node.inputs)
        arrays = {n: a for n, a in self.arrays.items() if n in needed}
        graph = Graph(
            nodes[::-1],
            self.inputs,
            outputs,
            [(n, a.shape) for n, a in arrays.items() if n not in self.buffers],
            [(n, a.shape) for n, a in arrays.items() if n in self.buffers],
            [(n, a) for n, a in self.constants.items() if n in needed],
            opset,
        )
        for name, array in arrays.items():
            getattr(graph, name).data[...] = array
        return graph


def attribute_name(name: str, taken: Collection[str] = ()) -> str:
    """Return a name for a parameter or buffer that is no attribute of a module."""
    free = name
    while (
        hasattr(Graph, free)
        or free in Graph.ATTRIBUTES
        or free.startswith("_")
        or (free != name and free in taken)
    ):
        free = f"weight_{free}" if free.startswith("_") else f"{free}_"
    return free


def channels_second(name: str, result: str, ndim: int) -> Node:
    """Return the node that views (N, ..., C) as (N, C, ...)."""
    return Node("Transpose", (name,), (result,), (("perm", (0, ndim - 1, *range(1, ndim - 1))),))
