"""Build a :class:`daskdl.nn.Graph` node by node, for readers of files of other programs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from daskdl.nn.core.graph import Graph
from daskdl.nn.core.nodes import Node
from daskdl.tensor import Array

Translate = TypeVar("Translate", bound=Callable[..., Any])


class Value(NamedTuple):
    """A result: its name in the graph, and its number of axes if known.

    ``second``: channels are second in the graph, and last in the file.
    """

    name: str
    rank: int | None
    second: bool = False


class Table(dict[str, Any]):
    """Functions that make a layer's nodes, by kind of layer."""

    def of(self, *kinds: str) -> Callable[[Translate], Translate]:
        """Register a function for these kinds of layers."""

        def register(function: Translate) -> Translate:
            self.update(dict.fromkeys(kinds, function))
            return function

        return register


class Builder:
    """Nodes, weights and constants, each under a unique name.

    Results keep their names in the file if these are free. Filters have their channels last, as in
    :class:`daskdl.nn.Conv2d`.
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
        """Return an unused name, and reserve it."""
        unused, n = name or "value", 1
        while unused in self._taken:
            n += 1
            unused = f"{name}_{n}"
        self._taken.add(unused)
        return unused

    def input(
        self, name: str, shape: tuple[int | None, ...] | None, dtype: str = "float32",
        turned: bool = False,
    ) -> str:  # fmt: skip
        """Add an input of ``shape``; if ``turned``, callers pass (N, C, H, W) as (N, H, W, C)."""
        name = self.free(name)
        last = (shape[0], *shape[2:], shape[1]) if turned and shape is not None else shape
        self.inputs.append((name, dtype, last))
        return self.transposed(name, (0, 3, 1, 2)) if turned else name

    def node(self, operator: str, *inputs: str, name: str = "", **attributes: Any) -> str:
        """Add a node with one result; return the result's name."""
        return self.nodes_of(operator, inputs, [name or operator.lower()], **attributes)[0]

    def nodes_of(
        self, operator: str, inputs: Sequence[str], names: Sequence[str], **attributes: Any
    ) -> list[str]:
        """Add a node with several results; return their names."""
        results = [self.free(name) for name in names]
        present = tuple((k, v) for k, v in attributes.items() if v is not None)
        self.nodes.append(Node(operator, tuple(inputs), tuple(results), present))
        return results

    def constant(self, value: Any, dtype: Any = np.float32) -> str:
        """Add an array that is not trained; equal arrays share a name."""
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
        """Add a trainable array; return its name."""
        name = self.free(attribute_name(name, self._taken))
        self.arrays[name] = array
        return name

    def filters(self, name: str, array: Array) -> str:
        """Store filters (M, C, ...) as (M, ..., C); return the name of their (M, C, ...) view."""
        name = self.parameter(name, np.moveaxis(array, 1, -1))
        view = self.free(f"{name}/last")
        self.nodes.append(channels_second(name, view, array.ndim))
        return view

    def buffer(self, name: str, array: Array) -> str:
        """Add running statistics; return their name."""
        name = self.parameter(name, array)
        self.buffers.add(name)
        return name

    def transposed(self, name: str, order: Sequence[int]) -> str:
        """Add a view with permuted axes, unless there is one; return its name."""
        key = ("Transpose", name, *order)
        if key not in self._known:
            turned = self.node("Transpose", name, name=f"{name}/turned", perm=tuple(order))
            self._known[key] = turned
            self._known["Transpose", turned, *np.argsort(order).tolist()] = name
        return self._known[key]

    def results(self, values: Iterable[Value], channels_last: bool) -> list[str]:
        """Return the names of results; if ``channels_last``, images become (N, H, W, C)."""
        return [
            self.transposed(v.name, (0, 2, 3, 1)) if channels_last and v.rank == 4 else v.name
            for v in values
        ]

    def second(self, value: Value) -> Value:
        """Return a value unchanged: most files have (N, C, ...)."""
        return value

    def last(self, value: Value) -> Value:
        """Return a value in the file's layout."""
        return value

    def made(self, like: Value, operator: str, *inputs: str, **attributes: Any) -> Value:
        """Add a node whose result has the layout of ``like``."""
        return like._replace(name=self.node(operator, *inputs, **attributes))

    def convolved(
        self,
        x: Value,
        filters: str,
        bias: str = "",
        *,
        operator: str = "Conv",
        name: str,
        padding: str | Sequence[int],
        strides: Sequence[int],
        dilations: Sequence[int],
        group: int = 1,
        output_padding: Sequence[int] | None = None,
    ) -> Value:
        """Add a convolution; padding is "SAME", "VALID" or (before, ..., behind, ...)."""
        x = self.second(x)
        inputs = [x.name, filters, bias] if bias else [x.name, filters]
        output = self.node(
            operator, *inputs, name=name, strides=tuple(strides), dilations=tuple(dilations),
            group=group, output_padding=output_padding, **padded(padding),
        )  # fmt: skip
        return Value(output, len(strides) + 2, True)

    def pooled(
        self, x: Value, operator: str, *, name: str, kernel: Sequence[int],
        strides: Sequence[int], padding: str | Sequence[int], **attributes: int | None,
    ) -> Value:  # fmt: skip
        """Add a pooling over windows; by default means leave out cells of the padding."""
        x = self.second(x)
        output = self.node(
            operator, x.name, name=name, kernel_shape=tuple(kernel), strides=tuple(strides),
            **padded(padding), **attributes,
        )  # fmt: skip
        return Value(output, len(kernel) + 2, True)

    def normalised(
        self, x: Value, scale: str, bias: str, statistics: tuple[str, str], eps: float, name: str,
        momentum: float | None = None,
    ) -> Value:  # fmt: skip
        """Add a batch normalisation; scale and bias may be ""."""
        count = self.arrays[statistics[0]].size
        x = self.second(x)
        return self.made(
            x, "BatchNormalization", x.name, scale or self.constant(np.ones(count)),
            bias or self.constant(np.zeros(count)), *statistics, name=name, epsilon=eps,
            momentum=momentum,
        )  # fmt: skip

    def graph(self, outputs: Iterable[str], opset: int = 21) -> Graph:
        """Return the graph with its weights; nodes that no output needs are left out."""
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


class LastBuilder(Builder):
    """A Builder for formats that have channels last.

    Operators of :class:`daskdl.nn.Graph` take images as (N, C, H, W), with channels last in
    memory. A value stays (N, C, H, W) from one such operator to the next. Where axes matter, it is
    viewed in the file's layout, (N, H, W, C).
    """

    def second(self, value: Value) -> Value:
        """Return a value (N, ..., C) as (N, C, ...)."""
        if value.second or (value.rank or 4) < 3:
            return value
        rank = value.rank or 4
        name = self.transposed(value.name, (0, rank - 1, *range(1, rank - 1)))
        return Value(name, rank, True)

    def last(self, value: Value) -> Value:
        """Return a value in the file's layout."""
        if not value.second:
            return value
        rank = value.rank or 4
        return Value(self.transposed(value.name, (0, *range(2, rank), 1)), rank)

    def reduced(self, x: Value, operator: str, axes: Iterable[int], keep: bool, name: str) -> Value:
        """Add a reduction; axes count in the file's layout."""
        rank = x.rank
        chosen = sorted(a % rank if rank else a for a in axes)
        if x.second and rank and (keep or chosen == list(range(1, rank - 1))):
            turned = tuple(1 if a == rank - 1 else a + 1 if a else 0 for a in chosen)
            output = self.node(
                operator, x.name, self.integers(*turned), name=name, keepdims=int(keep)
            )
            return Value(output, rank if keep else rank - len(chosen), keep)
        x = self.last(x)
        output = self.node(operator, x.name, self.integers(*chosen), name=name, keepdims=int(keep))
        return Value(output, rank if keep or rank is None else rank - len(chosen))

    def joined(self, values: Sequence[Value], axis: int, name: str) -> Value:
        """Add a concatenation; the axis counts in the file's layout."""
        rank = values[0].rank
        if rank and rank > 2 and any(v.second for v in values):
            values = [self.second(v) for v in values]
            axis %= rank
            axis = 1 if axis == rank - 1 else axis + 1 if axis else 0
        else:
            values = [self.last(v) for v in values]
        return self.made(values[0], "Concat", *(v.name for v in values), axis=axis, name=name)

    def broadcast(self, a: Value, b: Value, operator: str, name: str) -> Value:
        """Add an operator of two values; either may have fewer axes, and then lacks the first."""
        if a.second or b.second:
            whole, other = (a, b) if a.second else (b, a)
            rank = whole.rank or 4
            if not other.second and other.rank == rank:
                other = self.second(other)
            elif not other.second and other.rank == 1:  # of channels
                behind = self.integers(*range(1, rank - 1))
                other = Value(self.node("Unsqueeze", other.name, behind), rank, True)
            if (other.second and (other.rank or 4) == rank) or other.rank == 0:
                a, b = (whole, other) if a.second else (other, whole)
                return Value(self.node(operator, a.name, b.name, name=name), rank, True)
            a, b = self.last(a), self.last(b)
        output = self.node(operator, a.name, b.name, name=name)
        known = a.rank is not None and b.rank is not None
        return Value(output, max(a.rank or 0, b.rank or 0) if known else None)


def attribute_name(name: str, taken: Collection[str] = ()) -> str:
    """Return a name for a parameter or buffer that hides no attribute of a Graph."""
    free = name
    while (
        hasattr(Graph, free)
        or free in Graph.ATTRIBUTES
        or free.startswith("_")
        or (free != name and free in taken)
    ):
        free = f"weight_{free}" if free.startswith("_") else f"{free}_"
    return free


def by_channel(numbers: Array, rank: int) -> Array:
    """Return a number for each channel, (C, 1, ...) for (N, C, ...); one number stays (1,)."""
    flat = numbers.reshape(-1)
    return flat.reshape(-1, *(1,) * (rank - 2)) if flat.size > 1 else flat


def padded(padding: str | Sequence[int]) -> dict[str, Any]:
    """Return ONNX's attributes of a padding: "SAME", "VALID", or widths before and behind."""
    if isinstance(padding, str):
        return {"auto_pad": "SAME_UPPER" if padding.upper() == "SAME" else "VALID"}
    return {"pads": tuple(padding)}


def channels_second(name: str, result: str, ndim: int) -> Node:
    """Return a node that views (N, ..., C) as (N, C, ...)."""
    return Node("Transpose", (name,), (result,), (("perm", (0, ndim - 1, *range(1, ndim - 1))),))


def filters_second(kernel: Array) -> Array:
    """Return filters (..., in, out) as (out, in, ...)."""
    return np.moveaxis(kernel, (-1, -2), (0, 1))


def depthwise(kernel: Array) -> Array:
    """Return filters (..., C, multiplier) as (C * multiplier, 1, ...)."""
    channels, times = kernel.shape[-2:]
    turned = np.moveaxis(kernel, (-2, -1), (0, 1))
    return turned.reshape(channels * times, 1, *kernel.shape[:-2])
