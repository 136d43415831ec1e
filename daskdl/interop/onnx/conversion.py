"""Convert an ONNX graph to a :class:`daskdl.nn.Graph`."""

from __future__ import annotations

import collections
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from daskdl.errors import DaskdlError, ModelFileError
from daskdl.interop.building import channels_second
from daskdl.interop.guard import check_supported
from daskdl.interop.onnx.nodes import (
    add_uses,
    check_attributes,
    checked_shape,
    dtype_of,
    free_names,
    images_in,
    in_order,
    is_filters,
    to_array,
    with_names,
)
from daskdl.nn.core.graph import Graph
from daskdl.nn.core.nodes import FEW, Node, Subgraph, names_of
from daskdl.nn.operators import TABLE, Call
from daskdl.tensor import Array, Tensor, no_grad

#: Inputs that are settings of an operator: their arrays are not trained.
_SETTINGS = {
    "Clip": {1, 2}, "Dropout": {1, 2}, "OneHot": {1, 2}, "Pad": {1, 2, 3}, "Resize": {1, 2, 3},
    "Upsample": {1}, "Range": {0, 1, 2}, "NonMaxSuppression": {2, 3, 4}, "STFT": {2},
    "QuantizeLinear": {1, 2}, "DequantizeLinear": {1, 2},
}  # fmt: skip
#: Operators that are computed while reading if all their inputs are constant and small.
_FOLDED = {
    "Add", "Cast", "Ceil", "Concat", "Div", "Equal", "Floor", "Gather", "Identity", "Mul", "Neg",
    "Reshape", "Shape", "Slice", "Sqrt", "Squeeze", "Sub", "Unsqueeze", "Where",
}  # fmt: skip
#: Largest size of the inputs and the result of a folded node.
_SMALL = 1024
#: The fields of attributes, by their kinds.
_FIELDS = {1: "f", 2: "i", 3: "s", 4: "t", 5: "g", 6: "floats", 7: "ints", 8: "strings"}
#: Largest depth of nested bodies of control flow.
_DEEPEST = 16


class Conversion:
    """One graph of a file; ``where`` names it in errors, ``folder`` may have external data."""

    def __init__(self, proto: Any, opset: int, where: str, folder: Path | None) -> None:
        self.opset, self.where, self.folder = opset, where, folder
        self.tensors: dict[str, Any] = {}
        self.constants: dict[str, Array] = {}
        for tensor in proto.initializer:
            if not tensor.name or tensor.name in self.tensors:
                raise ModelFileError(
                    f"{where}: expected each tensor once, found {tensor.name!r}"
                    "; export the model again"
                )
            self.tensors[tensor.name] = tensor
        if proto.sparse_initializer:
            raise ModelFileError(
                f"{where}: sparse tensors are not supported; export the model without them"
            )
        self.first_class = set(self.tensors)
        self.inputs = [
            _input(value, where) for value in proto.input if value.name not in self.tensors
        ]
        self.outputs = [value.name for value in proto.output]
        kinds = [value.type.tensor_type for value in proto.output]
        self.axes = [len(k.shape.dim) if k.HasField("shape") else None for k in kinds]
        self.batch = _batch([v for v in proto.input if v.name not in self.tensors])
        unknown: dict[str, str] = {}
        nodes = [node for node in self._nodes(proto.node, unknown, 0) if not self._constant(node)]
        self.nodes = in_order(nodes, {name for name, *_ in self.inputs})
        advice = "docs/onnx.md lists them all"
        if any(operator.startswith("com.microsoft:") for operator in unknown):
            advice += "; tools of onnxruntime made some: load the file that they were given"
        check_supported(where, "operators", unknown.items(), (), advice)
        self._whole()

    def _whole(self) -> None:
        """Refuse a file that lacks a node's input, as PyTorch's exporter may write it."""
        present = {name for name, *_ in self.inputs} | self.tensors.keys() | self.constants.keys()
        present.update(name for node in self.nodes for name in node.outputs)
        for node in self.nodes:
            lacking = [name for name in node.inputs if name and name not in present]
            if lacking:
                place = f"{self.where}: {node.operator} {', '.join(node.outputs)}"
                raise ModelFileError(
                    f"{place} reads {', '.join(lacking)}, but no input, weight or node of the "
                    "file has that name; export the model again, from PyTorch with optimize=False"
                )

    def graph(self, channels_last: bool) -> Graph:
        """Return the graph with its weights."""
        uses: dict[str, list[tuple[str, int]]] = collections.defaultdict(list)
        add_uses(self.nodes, uses)
        parameters: dict[str, tuple[int, ...]] = {}
        buffers: dict[str, tuple[int, ...]] = {}
        for name, tensor in self.tensors.items():
            kind = self._kind(name, tensor, uses[name])
            if kind == "parameter":
                parameters[name] = checked_shape(tensor, self.folder, self.where)
            elif kind == "buffer":
                buffers[name] = checked_shape(tensor, self.folder, self.where)
            elif uses[name] or name in self.outputs:
                self.constants[name] = to_array(tensor, self.folder, self.where)
        self._fold()
        names = free_names({**parameters, **buffers}, self._all_names())
        last = [n for n in parameters if is_filters(parameters[n], uses[n])]
        lead = [
            channels_second(names[name], f"{names[name]}/last", len(parameters[name]))
            for name in last
        ]
        renamed = {**names, **{name: f"{names[name]}/last" for name in last}}
        nodes = [*lead, *(with_names(node, renamed) for node in self.nodes)]
        inputs, outputs = self.inputs, [renamed.get(name, name) for name in self.outputs]
        if channels_last:
            inputs, nodes = images_in(inputs, nodes)
        shapes = {
            name: (shape[0], *shape[2:], shape[1]) if name in last else shape
            for name, shape in parameters.items()
        }
        graph = Graph(
            nodes,
            inputs,
            outputs,
            [(names[n], shape) for n, shape in shapes.items()],
            [(names[n], shape) for n, shape in buffers.items()],
            [(renamed.get(n, n), a) for n, a in self.constants.items()],
            self.opset,
            channels_last,
            self.batch,
            self.axes,
        )
        for name in (*parameters, *buffers):
            array = to_array(self.tensors[name], self.folder, self.where)
            array = np.moveaxis(array, 1, -1) if name in last else array
            getattr(graph, names[name]).data[...] = array
        return graph

    def _kind(self, name: str, tensor: Any, uses: list[tuple[str, int]]) -> str:
        dtype = dtype_of(tensor.data_type, f"{self.where}: tensor {name!r}")
        if dtype not in (np.float32, np.float16) or not tensor.dims or not uses:
            return "constant"
        if all(op == "BatchNormalization" and i in (3, 4) for op, i in uses):
            return "buffer"
        if any(i in _SETTINGS.get(op, ()) or ":Q" in op or op[:1] in ("Q", "#") for op, i in uses):
            return "constant"
        if name in self.first_class:
            return "parameter"
        return "parameter" if int(np.prod(tensor.dims)) > FEW else "constant"

    def _nodes(self, protos: Any, unknown: dict[str, str], depth: int) -> Iterator[Node]:
        if depth > _DEEPEST:
            raise ModelFileError(f"{self.where}: bodies lie in each other too deep")
        for node in protos:
            domain = "" if node.domain in ("", "ai.onnx") else f"{node.domain}:"
            operator = domain + node.op_type
            if operator not in TABLE:
                unknown.setdefault(operator, f"node {node.name or next(iter(node.output), '')!r}")
                continue
            check_attributes(node, operator, self.where)
            attributes = tuple(
                (a.name, self._attribute(a, f"{operator}.{a.name}", unknown, depth))
                for a in node.attribute
            )
            outputs = list(node.output)
            while outputs and not outputs[-1]:
                outputs.pop()
            yield Node(operator, tuple(node.input), tuple(outputs), attributes)

    def _attribute(self, proto: Any, name: str, unknown: dict[str, str], depth: int) -> Any:
        kind = proto.type or _kind_of(proto)
        if proto.ref_attr_name:
            raise ModelFileError(
                f"{self.where}: {name}: attributes by reference need a function"
                "; export the model without them"
            )
        if kind == 2 and name.endswith((".to", "dtype", "output_datatype")):
            dtype_of(proto.i, f"{self.where}: {name}")
        if kind == 4:
            later = name == "Constant.value" and depth == 0
            return _Deferred(proto.t) if later else self._array(proto.t)
        if kind == 5:
            return self._body(proto.g, unknown, depth + 1)
        if kind == 13:  # type of an Optional: its value says the same
            return None
        if kind not in _FIELDS:
            raise ModelFileError(
                f"{self.where}: {name}: attributes of kind {kind} are not supported"
                "; export the model without them"
            )
        value = getattr(proto, _FIELDS[kind])
        return tuple(map(_plain, value)) if kind > 5 else _plain(value)

    def _array(self, tensor: Any) -> Array:
        return to_array(tensor, self.folder, self.where)

    def _body(self, proto: Any, unknown: dict[str, str], depth: int) -> Subgraph:
        if proto.sparse_initializer:
            raise ModelFileError(
                f"{self.where}: sparse tensors are not supported; export the model without them"
            )
        placeholders = [
            Node("Constant", (), (tensor.name,), (("value", self._array(tensor)),))
            for tensor in proto.initializer
        ]
        nodes = [*placeholders, *self._nodes(proto.node, unknown, depth)]
        inputs = tuple(v.name for v in proto.input)
        nodes = in_order(nodes, set(inputs))
        return Subgraph(inputs, tuple(v.name for v in proto.output), tuple(nodes))

    def _constant(self, node: Node) -> bool:
        """Whether a node is one array; then add it to the tensors or constants."""
        if node.operator != "Constant" or len(node.outputs) != 1:
            return False
        attributes = dict(node.attributes)
        name = node.outputs[0]
        if name in self.tensors or name in self.constants:
            raise ModelFileError(
                f"{self.where}: {name!r} is computed twice; export the model again"
            )
        value = attributes.get("value")
        if isinstance(value, _Deferred):
            self.tensors[name] = value.proto
        else:
            self.constants[name] = np.asarray(TABLE["Constant"](Call("Constant", attributes)))
        return True

    def _fold(self) -> None:
        """Compute nodes whose inputs are small constants."""
        with no_grad():
            remaining = [node for node in self.nodes if not self._folded(node)]
        self.nodes = remaining
        needed = {name for node in remaining for name in names_of(node)} | set(self.outputs)
        self.constants = {n: a for n, a in self.constants.items() if n in needed}

    def _folded(self, node: Node) -> bool:
        if node.operator not in _FOLDED or not node.inputs or len(node.outputs) != 1:
            return False
        if not all(name in self.constants for name in node.inputs):
            return False
        arrays = [self.constants[name] for name in node.inputs]
        if sum(a.size for a in arrays) > _SMALL:
            return False
        try:
            with np.errstate(all="ignore"):
                value = TABLE[node.operator](
                    Call(node.operator, dict(node.attributes), self.opset), *arrays
                )
        except (DaskdlError, ArithmeticError, LookupError, TypeError, ValueError):
            return False  # the error comes when the graph runs, with the node's name
        array = value.data if isinstance(value, Tensor) else np.asarray(value)
        if array.size > _SMALL:
            return False
        self.constants[node.outputs[0]] = array
        return True

    def _all_names(self) -> set[str]:
        names = {name for name, *_ in self.inputs} | set(self.tensors) | set(self.constants)
        return names | {name for node in self.nodes for name in (*node.outputs, *names_of(node))}


class _Deferred:
    """A tensor of a Constant node, read once its use is known."""

    def __init__(self, proto: Any) -> None:
        self.proto = proto


def _kind_of(proto: Any) -> int:
    """Return the kind of an attribute of an old file, by its field that is set."""
    filled = {field.name for field, _ in proto.ListFields()}
    return next((kind for kind, name in _FIELDS.items() if name in filled), 7)


def _plain(value: Any) -> Any:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _input(value: Any, where: str) -> tuple[str, str, tuple[int | None, ...] | None]:
    where = f"{where}: input {value.name!r}"
    if not value.type.HasField("tensor_type"):
        return value.name, "", None
    kind = value.type.tensor_type
    dtype = dtype_of(kind.elem_type, where).name
    if not kind.HasField("shape"):
        return value.name, dtype, None
    lengths = [d.dim_value if d.HasField("dim_value") else None for d in kind.shape.dim]
    if any(n is not None and n < 0 for n in lengths):
        lengths = [None if n is not None and n < 0 else n for n in lengths]
    return value.name, dtype, (*(None for _ in lengths[:1]), *lengths[1:])


def _batch(inputs: list[Any]) -> int | None:
    """Return the fixed batch size of the file; None for one sample or any number."""
    kinds = [value.type.tensor_type.shape.dim for value in inputs]
    first = {dims[0].dim_value for dims in kinds if len(dims)}
    (count,) = first if len(first) == 1 else (0,)
    return count if count > 1 else None
