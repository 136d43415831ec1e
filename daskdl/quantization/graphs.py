"""Rewrite graphs of ONNX operators with int8 layers, by QuantizeLinear and DequantizeLinear."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.int8.prepared import quantised
from daskdl.nn import Graph, Module, Quantized
from daskdl.nn.core.nodes import Node
from daskdl.ops.int8 import has_int8

Array = NDArray[Any]
#: A layer's scale and zero.
Scales = Mapping[str, tuple[float, int]]

#: Operators whose results are stored rounded, for all their readers.
_COMPUTING = {"Add", "Clip", "Conv", "Gemm", "MatMul", "MaxPool", "Relu"}


def graphs_of(model: Module) -> list[tuple[str, Graph]]:
    """Return the distinct graphs in a model, with the prefix of their layers' names."""
    graphs = {id(m): (f"{n}." if n else "", m) for n, m in model.modules() if isinstance(m, Graph)}
    return list(graphs.values())


def layers_of(graph: Graph) -> Iterator[Node]:
    """Yield the nodes of a graph with an int8 counterpart: products with the graph's weights."""
    arrays = _arrays(graph)
    for node in graph.nodes:
        if node.operator not in ("Conv", "Gemm", "MatMul") or node.inputs[0] in arrays:
            continue
        settings, weight = dict(node.attributes), arrays.get(node.inputs[1])
        scaled = [settings.get("transA", 0), settings.get("alpha", 1), settings.get("beta", 1)]
        if weight is None or weight.dtype != np.float32 or scaled != [0, 1, 1]:
            continue
        if weight.ndim != (4 if node.operator == "Conv" else 2):
            continue
        filters = np.moveaxis(weight, _axis(node), 0)
        if has_int8(np.moveaxis(filters, 1, -1).shape, settings.get("group", 1)):
            yield node


def rounded(graph: Graph, scales: Scales) -> Graph:
    """Return a graph in which the layers in ``scales`` have int8 weights and int8 inputs.

    ``scales`` has the inputs' (scale, zero) by the layers' names, the names of their results.
    """
    arrays, nodes = _arrays(graph), list[Node]()
    constants = dict(graph.constants)
    made_by = {name: node.operator for node in graph.nodes for name in node.outputs}
    floats: dict[tuple[str, Any], str] = {}  # dequantized values, by name and scale
    same: dict[str, str] = {}
    for old in graph.nodes:
        node = old._replace(inputs=tuple(same.get(name, name) for name in old.inputs))
        name = old.outputs[0]
        if name not in scales:
            nodes.append(node)
            continue
        x, of_x = old.inputs[0], scales[name]
        if (x, of_x) not in floats:
            floats[x, of_x] = y = f"{x} in int8" + (f", {len(floats)}" if x in same else "")
            whole = f"{y}: scale", f"{y}: zero"
            constants[whole[0]] = np.array(of_x[0], np.float32)
            constants[whole[1]] = np.array(of_x[1], np.uint8)
            nodes.append(Node("QuantizeLinear", (x, *whole), (f"{y}: bytes",)))
            nodes.append(Node("DequantizeLinear", (f"{y}: bytes", *whole), (y,)))
            if made_by.get(x) in _COMPUTING:
                same.setdefault(x, y)
        weight, axis = old.inputs[1], _axis(old)
        numbers, scale = quantised(np.moveaxis(arrays[weight], axis, 0))
        parts = [f"{weight}: {part} of {name}" for part in ("int8 numbers", "scale", "zero")]
        constants[parts[0]] = np.ascontiguousarray(np.moveaxis(numbers, 0, axis))
        constants[parts[1]], constants[parts[2]] = scale, np.zeros(len(scale), np.int8)
        more = f"{weight} of {name}"
        nodes.append(Node("DequantizeLinear", tuple(parts), (more,), (("axis", axis),)))
        nodes.append(node._replace(inputs=(floats[x, of_x], more, *node.inputs[2:])))
    return graph.with_nodes(nodes, graph.outputs, constants).eval()


def with_int8(model: Module, scales: Mapping[str, Any], rows: Sequence[Any] = ()) -> Quantized:
    """Return a model in which the layers in ``scales``, of modules and graphs, are int8.

    ``scales`` has (scale, zero) by layer name; ``rows`` are the rows of the model's table.
    """
    modules = dict(scales)
    for before, graph in graphs_of(model):
        of_graph = {node.outputs[0] for node in layers_of(graph)}
        chosen = {name: modules.pop(before + name) for name in of_graph if before + name in modules}
        if chosen:
            made = vars(rounded(graph, chosen))
            vars(graph).clear()  # keep the object: containers have it among their arguments, too
            vars(graph).update(made)
    return Quantized(model, [(name, *scale) for name, scale in modules.items()], rows)


def _arrays(graph: Graph) -> dict[str, Array]:
    """Return the arrays of a graph by name, with the transposed views of them."""
    arrays = {**graph.constants, **{name: tensor.data for name, tensor in graph.held()}}
    for node in graph.nodes:
        if node.operator == "Transpose" and node.inputs[0] in arrays:
            array = arrays[node.inputs[0]]
            arrays[node.outputs[0]] = array.transpose(dict(node.attributes).get("perm"))
    return arrays


def _axis(node: Node) -> int:
    """Return the output axis of a node's weights."""
    return 0 if node.operator == "Conv" or dict(node.attributes).get("transB") else 1
