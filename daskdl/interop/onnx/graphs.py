"""Write a Graph as ONNX: its nodes already are ONNX operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from daskdl.errors import SettingsError
from daskdl.nn.core.graph import Graph
from daskdl.nn.core.nodes import Node, Subgraph
from daskdl.tensor import Array


def graph_model(graph: Graph) -> Any:
    """Return the ``onnx.ModelProto`` of a graph; float16 becomes float32."""
    import onnx
    from onnx import helper

    for node in graph.nodes:
        if ":" not in node.operator and not onnx.defs.has(node.operator):
            raise SettingsError(
                f"Graph: node {node.outputs[0]!r}: ONNX has no operator {node.operator}; "
                "graph.until(name) ends before it"
            )
    state = {name: tensor.data for name, tensor in graph.held()}
    arrays = {**state, **graph.constants}
    nodes = [n for node in graph.nodes for n in _nodes(node)]
    inputs = [_input(*one) for one in graph.inputs]
    results = list(graph.outputs)
    proto = helper.make_graph(
        nodes,
        "graph",
        inputs,
        [helper.make_empty_tensor_value_info(name) for name in results],
        [onnx.numpy_helper.from_array(np.ascontiguousarray(a).reshape(a.shape), n)
         for n, a in arrays.items()],
    )  # fmt: skip
    domains = sorted({n.domain for n in nodes if n.domain})
    inferred = onnx.shape_inference.infer_shapes(model_of(proto, graph.opset, domains))
    for output, axes in zip(
        inferred.graph.output, graph.axes or [None] * len(results), strict=True
    ):
        numbers = output.type.tensor_type
        sequence = output.type.WhichOneof("value") not in (None, "tensor_type")
        if sequence or (numbers.elem_type and numbers.HasField("shape")):
            continue
        lengths = None if axes is None else [None] * axes
        kind = numbers.elem_type or onnx.TensorProto.FLOAT
        output.CopyFrom(helper.make_tensor_value_info(output.name, kind, lengths))
    return inferred


def model_of(graph: Any, opset: int, domains: Sequence[str] = ()) -> Any:
    """Return the ``onnx.ModelProto`` of a GraphProto with operators of these domains."""
    from onnx import helper

    imports = [helper.make_opsetid("", opset)]
    return helper.make_model(
        graph,
        opset_imports=[*imports, *(helper.make_opsetid(domain, 1) for domain in domains)],
        producer_name="daskdl",
        # before version 4, weights had to be inputs too
        ir_version=max(4, helper.find_min_ir_version_for(imports)),
    )


def _input(name: str, dtype: str, shape: Any) -> Any:
    from onnx import helper

    if not dtype:
        raise SettingsError(
            f"Graph: input {name!r}: expected an array, found a sequence or an optional value, of "
            "which the numbers' type is not known; use the file that the graph was read from"
        )
    kind = helper.np_dtype_to_tensor_dtype(np.dtype("float32" if dtype == "float16" else dtype))
    lengths = None
    if shape is not None:
        lengths = ["N" if i == 0 and n is None else n for i, n in enumerate(shape)]
    return helper.make_tensor_value_info(name, kind, lengths)


def _nodes(node: Node) -> list[Any]:
    from onnx import helper

    domain, _, operator = node.operator.rpartition(":")
    # onnxruntime needs the types of a loop's number of the step and condition
    scalars = (7, 9) if operator == "Loop" else ()
    attributes = {n: _attribute(v, scalars) for n, v in node.attributes if v is not None}
    if operator == "Cast" and attributes.get("to") == 10:  # rounded to float16, kept as float32
        half = f"{node.outputs[0]}/half"
        return [
            helper.make_node("Cast", list(node.inputs), [half], to=10),
            helper.make_node("Cast", [half], list(node.outputs), to=1),
        ]
    made = helper.make_node(operator, list(node.inputs), list(node.outputs), domain=domain or None)
    made.attribute.extend(
        helper.make_attribute(name, value, attr_type=_kind(value))
        for name, value in attributes.items()
    )
    return [made]


def _kind(value: Any) -> int | None:
    """Return the kind of an empty list (ints); onnx infers the kind of other values."""
    return 7 if isinstance(value, (list, tuple)) and not value else None


def _attribute(value: Any, scalars: tuple[int, ...]) -> Any:
    """Return an attribute's proto; the first inputs of a body are ``scalars`` of these types."""
    from onnx import helper, numpy_helper

    if isinstance(value, np.ndarray):
        array: Array = value
        return numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape))
    if isinstance(value, Subgraph):
        return helper.make_graph(
            [n for node in value.nodes for n in _nodes(node)],
            "body",
            [
                *map(helper.make_tensor_value_info, value.inputs, scalars, [()] * len(scalars)),
                *map(helper.make_empty_tensor_value_info, value.inputs[len(scalars) :]),
            ],
            [helper.make_empty_tensor_value_info(name) for name in value.outputs],
        )
    return list(value) if isinstance(value, tuple) else value
