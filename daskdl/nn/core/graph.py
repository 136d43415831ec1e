"""A network as a graph of operators, such as one read from an ONNX file: plain data, trainable."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from daskdl.errors import DaskdlError, SettingsError, ShapeError
from daskdl.nn.core.int8_steps import steps_of
from daskdl.nn.core.module import Module
from daskdl.nn.core.nodes import (
    FEW,
    Node,
    Subgraph,
    check_nodes,
    is_pure,
    last_uses,
    names_of,
    node_of,
    packed,
    plain_node,
    unpacked,
)
from daskdl.nn.core.parameter import Buffer, Parameter
from daskdl.nn.operators import TABLE, Call
from daskdl.nn.operators.quantize import STEPS
from daskdl.ops.shape.shape import transpose
from daskdl.tensor import Array, Tensor, recording

__all__ = ["Graph"]

#: Attributes that copies share: copying nodes takes as long as the kernels of a small network.
_SHARED = {
    "nodes", "inputs", "outputs", "_arguments", "_constants", "_held", "_last", "_steps",
}  # fmt: skip


class Graph(Module):
    """Operators, computed one after the other.

    Parameters
    ----------
    nodes : sequence of (operator, inputs, outputs, attributes)
        Nodes in an order in which each finds its inputs, see :class:`Node`. Operators are ONNX's
        (:mod:`daskdl.nn.operators`).
    inputs : sequence of (name, dtype, shape)
        Inputs in the order of :meth:`forward`; None in a shape is any length.
    outputs : sequence of str
        Names of the results of :meth:`forward`.
    parameters : sequence of (name, shape)
        Trainable arrays, zeros until ``load_state_dict`` or a model file fills them. They are
        attributes by their names, for :meth:`freeze`.
    buffers : sequence of (name, shape)
        The running statistics of batch normalisation.
    constants : sequence of (name, dtype, shape, numbers) or (name, array)
        Arrays that are not trained, such as shapes; see :func:`packed`.
    opset : int
        Version of ONNX's operator set that the attributes follow.
    channels_last : bool
        Whether results of more than two axes, (N, C, ...), are returned as (N, ..., C).
    batch : int, optional
        Batch size that the nodes require, if it is fixed; :meth:`predict` uses such batches.
    axes : sequence of int or None, optional
        Number of axes that a file states for each output, for writing it again.

    Raises
    ------
    SettingsError
        When an operator is not in the table, or a name is missing or occurs twice.

    Examples
    --------
    >>> graph = Graph(
    ...     [("MatMul", ("x", "w"), ("y",), ()), ("Relu", ("y",), ("z",), ())],
    ...     inputs=[("x", "float32", (None, 3))], outputs=["z"], parameters=[("w", (3, 2))],
    ... )
    >>> graph(np.ones((5, 3), np.float32)).shape
    (5, 2)
    """

    #: Names that only an object has, not its class.
    ATTRIBUTES: ClassVar = (
        "nodes",
        "inputs",
        "outputs",
        "opset",
        "channels_last",
        "training",
        "batch",
        "axes",
    )

    def __init__(
        self,
        nodes: Sequence[Any],
        inputs: Sequence[Any],
        outputs: Sequence[str],
        parameters: Sequence[Any] = (),
        buffers: Sequence[Any] = (),
        constants: Sequence[Any] = (),
        opset: int = 21,
        channels_last: bool = False,
        batch: int | None = None,
        axes: Sequence[int | None] | None = None,
    ) -> None:
        self.nodes = tuple(node_of(node) for node in nodes)
        self.inputs = tuple((name, dtype, _tuple(shape)) for name, dtype, shape in inputs)
        self.outputs, self.opset, self.channels_last = tuple(outputs), opset, channels_last
        self._batch, self.axes = batch, _tuple(axes)
        self._constants = {name: unpacked(*rest) for name, *rest in constants}
        self._held = tuple(name for name, _ in (*parameters, *buffers))
        for name in self._held:
            if not name or name[0] == "_" or hasattr(self, name):
                raise SettingsError(
                    f"Graph: expected names of parameters and buffers that are no attributes of a "
                    f"module, each once, found {name!r}"
                )
        for name, shape in parameters:
            setattr(self, name, Parameter(np.zeros(shape, np.float32)))
        for name, shape in buffers:
            setattr(self, name, Buffer(np.zeros(shape, np.float32)))
        known = {name for name, *_ in self.inputs} | set(self._constants) | set(self._held)
        check_nodes(self.nodes, self.outputs, known)
        shapes = {name: tuple(shape) for name, shape in parameters}
        self._steps = steps_of(self.nodes, self._constants, shapes, self.outputs, opset)
        self._last = last_uses(self._steps.nodes, self.outputs)

    def forward(self, *inputs: Any, **named: Any) -> Any:
        """Compute the outputs, a tensor or a tuple, for inputs in order or by name."""
        names = [name for name, *_ in self.inputs]
        if named and not inputs and named.keys() == set(names):
            inputs = tuple(named[name] for name in names)
        elif named:
            raise ShapeError(f"Graph: expected inputs called {names}, found {sorted(named)}")
        if len(inputs) != len(self.inputs):
            raise ShapeError(f"Graph: expected {len(names)} inputs, {names}, found {len(inputs)}")
        values: dict[str, Any] = dict(self._constants)
        values.update((name, getattr(self, name)) for name in self._held)
        for (name, dtype, shape), value in zip(self.inputs, inputs, strict=True):
            values[name] = _taken(name, dtype, shape, value)
        if recording() or self.training:
            self._run(self.nodes, values)
        else:
            values |= self._steps.arrays
            self._run(self._steps.nodes, values, self._last)
        results = tuple(_user_value(values[name], self.channels_last) for name in self.outputs)
        return results[0] if len(results) == 1 else results

    def until(self, name: str) -> Graph:
        """Return a new graph that ends at a value, such as the input of the last layer.

        A new head follows it in a :class:`~daskdl.nn.Sequential`. Parameters are copies.

        Parameters
        ----------
        name : str
            Result of a node; :attr:`nodes` has their names.

        Raises
        ------
        SettingsError
            When no node has such a result.
        """
        made = {out: node for node in self.nodes for out in node.outputs}
        if name not in made:
            raise SettingsError(
                f"Graph.until: expected a result of a node, such as {next(reversed(made), '')!r}, "
                f"found {name!r}"
            )
        return self.with_nodes(self.nodes, (name,), self._constants)

    def with_nodes(
        self, nodes: Sequence[Node], outputs: Sequence[str], constants: Mapping[str, Array]
    ) -> Graph:
        """Return a graph with other nodes, and copies of the weights that they read.

        Nodes that no result needs, and constants that no node reads, are left out.
        """
        read, needed = set(outputs), []
        for node in reversed(nodes):
            if read & set(node.outputs):
                needed.append(node)
                read.update(names_of(node))
        state = {n: v for n, v in self.state_dict().items() if n in read}
        made = Graph(
            tuple(needed[::-1]),
            self.inputs,
            tuple(outputs),
            [(n, v.shape) for n, v in state.items() if not isinstance(getattr(self, n), Buffer)],
            [(n, v.shape) for n, v in state.items() if isinstance(getattr(self, n), Buffer)],
            [(n, v) for n, v in constants.items() if n in read],
            self.opset,
            self.channels_last,
            self._batch,
            self.axes if tuple(outputs) == self.outputs else None,
        )
        made.load_state_dict(state)
        return made

    @property
    def pure(self) -> bool:  # type: ignore[override]
        """Whether all its operators read only shapes, not numbers."""
        floats = all(dtype == "float32" for _, dtype, _ in self.inputs)
        return floats and all(map(is_pure, self._steps.nodes))

    @property
    def constants(self) -> Mapping[str, Array]:
        """Arrays that are not trained, by their names."""
        return self._constants

    @property
    def in_int8(self) -> bool:
        """Whether inference multiplies whole numbers."""
        return any(node.operator in ("int8:Conv", "int8:Linear") for node in self._steps.nodes)

    @property
    def made(self) -> Mapping[str, Array]:
        """Arrays that inference computes from constants, by their names."""
        return self._steps.arrays

    @property
    def _arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:  # type: ignore[override]
        """Constructor arguments for a model file; made plain data only when asked for."""
        arguments = [(name, getattr(self, name)) for name in self._held]
        return (
            tuple(map(plain_node, self.nodes)),
            self.inputs,
            self.outputs,
            tuple((n, p.shape) for n, p in arguments if isinstance(p, Parameter)),
            tuple((n, p.shape) for n, p in arguments if isinstance(p, Buffer)),
            tuple(
                (n, v) if v.size > FEW and v.dtype.kind in "biuf" else (n, *packed(v))
                for n, v in self._constants.items()
            ),
            self.opset,
            self.channels_last,
        ), {k: v for k, v in (("batch", self._batch), ("axes", self.axes)) if v is not None}

    def _run(self, nodes: Sequence[Node], values: dict[str, Any], last: Sequence[Any] = ()) -> None:
        watch = vars(self).get("watch")  # quantizing needs each node's first input
        for i, node in enumerate(nodes):
            inputs = [values[name] if name else None for name in node.inputs]
            if watch is not None and inputs:
                watch(node.outputs[0], inputs[0])
            attributes = dict(node.attributes)
            call = Call(
                node.operator, attributes, self.opset, len(node.outputs), self.training,
                lambda body, more: self._body(body, {**values, **more}),
            )  # fmt: skip
            try:
                with np.errstate(all="ignore"):
                    result = (STEPS.get(node.operator) or TABLE[node.operator])(call, *inputs)
            except (DaskdlError, ArithmeticError, LookupError, TypeError, ValueError) as error:
                kind = type(error) if isinstance(error, DaskdlError) else ShapeError
                shapes = [getattr(values.get(name), "shape", ()) for name, *_ in self.inputs]
                fits = {shape[0] for shape in shapes if shape} <= {self._batch}
                advice = "" if self._batch is None or fits else (
                    f"; the file is of batches of {self._batch} samples: give as many, or export "
                    "it for any number"
                )  # fmt: skip
                raise kind(
                    f"Graph: node {node.outputs[0]!r}, {node.operator}: {error}{advice}"
                ) from error
            results = result if isinstance(result, tuple) else (result,)
            values.update((n, r) for n, r in zip(node.outputs, results, strict=False) if n)
            for name in last[i] if last else ():
                del values[name]

    def _body(self, body: Subgraph, values: dict[str, Any]) -> list[Any]:
        self._run(body.nodes, values)
        return [values[name] for name in body.outputs]

    def __deepcopy__(self, memo: dict[int, Any]) -> Graph:
        """Return a copy with its own weights; it shares nodes and constants, which never change."""
        made = type(self).__new__(type(self))
        memo[id(self)] = made
        for name, value in self.__dict__.items():
            made.__dict__[name] = value if name in _SHARED else copy.deepcopy(value, memo)
        return made

    def __repr__(self) -> str:
        names = ", ".join(name for name, *_ in self.inputs)
        return f"Graph({names} -> {', '.join(self.outputs)}: {len(self.nodes)} nodes)"


def _tuple(shape: Any) -> Any:
    return None if shape is None else tuple(shape)


def _user_value(value: Any, channels_last: bool) -> Any:
    """Return a result as a tensor, with its channels last if ``channels_last``."""
    if value is None or isinstance(value, list):
        return value
    tensor = value if isinstance(value, Tensor) else Tensor(value)
    if not channels_last or tensor.ndim < 3:
        return tensor
    return transpose(tensor, axes=(0, *range(2, tensor.ndim), 1))


def _taken(name: str, dtype: str, shape: Any, value: Any) -> Any:
    """Return an input in the graph's dtype; raise a ShapeError if its shape or dtype is wrong."""
    if value is None or isinstance(value, list):
        return value
    array = value if hasattr(value, "backward") else np.asarray(value)
    if array.dtype == np.float16:
        array = np.asarray(array).astype(np.float32)
    fits = shape is None or (
        len(array.shape) == len(shape)
        and all(n is None or n == m for n, m in zip(shape, array.shape, strict=True))
    )
    if not fits:
        wanted = ", ".join("any" if n is None else str(n) for n in shape)
        raise ShapeError(
            f"Graph: input {name!r}: expected shape ({wanted}), found {tuple(array.shape)}"
        )
    wanted_dtype = np.dtype("float32" if dtype == "float16" else dtype) if dtype else array.dtype
    if array.dtype == wanted_dtype:
        return array
    if np.can_cast(array.dtype, wanted_dtype, "same_kind"):
        return array.astype(wanted_dtype) if isinstance(array, np.ndarray) else array
    raise ShapeError(f"Graph: input {name!r}: expected {wanted_dtype}, found {array.dtype}")
