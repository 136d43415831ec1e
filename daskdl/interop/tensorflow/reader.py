"""Read frozen graphs of TensorFlow as :class:`daskdl.nn.Graph`."""

from __future__ import annotations

import collections
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from daskdl.errors import ModelFileError
from daskdl.interop.building import Value
from daskdl.interop.guard import check_supported, existing, reading
from daskdl.interop.tensorflow import arithmetic, images, shaping
from daskdl.interop.tensorflow.graphdef import NodeDef, read
from daskdl.interop.tensorflow.images import recognised
from daskdl.interop.tensorflow.net import TABLE, Call, Net, Operand
from daskdl.nn.core.graph import Graph

#: Importing these fills the table of operators.
FAMILIES = (arithmetic, images, shaping)
_INPUTS = ("Placeholder", "DecodeJpeg", "DecodePng", "DecodeImage", "IteratorGetNext")
#: Operators that are no outputs of a network, though no node reads them.
_ASIDE = (*_INPUTS, "Const", "NoOp", "Assert", "PlaceholderWithDefault")


def load(
    path: str | Path,
    *,
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    channels_last: bool = True,
) -> Graph:
    """Read a frozen graph as a graph; it predicts, trains and saves as any module does.

    Images are (N, H, W, C), as in TensorFlow. Constants of floats become parameters; running
    statistics of batch normalisation become buffers. The first axis of inputs is free.

    Parameters
    ----------
    path : path
        A ``.pb`` with variables as constants.
    inputs : sequence of str
        Names of nodes that become inputs; by default the placeholders. Name the node behind the
        decoding or preparation of pictures to pass arrays instead.
    outputs : sequence of str
        Names of nodes whose results are returned; by default all that no node reads.
    channels_last : bool
        Must be True.

    Raises
    ------
    ModelFileError
        When the file is missing, damaged or has operators that are not supported.
    """
    path = existing(path, "frozen graph")
    if not channels_last:
        raise ModelFileError(
            f"{path}: TensorFlow's images are (N, H, W, C); leave channels_last out"
        )
    return from_bytes(path.read_bytes(), str(path), inputs, outputs).eval()


def from_bytes(
    data: bytes, where: str, inputs: Sequence[str] = (), outputs: Sequence[str] = ()
) -> Graph:
    """Read the bytes of a frozen graph; ``where`` names it in errors."""
    nodes = read(data, where)
    with reading(where):
        return _Reading(nodes, where, inputs, outputs).graph()


class _Reading:
    """Nodes by name, and the results of nodes that were translated."""

    def __init__(
        self, nodes: list[NodeDef], where: str, inputs: Sequence[str], outputs: Sequence[str]
    ) -> None:
        self.where, self.net = where, Net()
        self.nodes = {node.name: node for node in nodes}
        if len(self.nodes) != len(nodes):
            raise ModelFileError(f"{where}: names of nodes come twice; it is damaged")
        for node in nodes:
            node.inputs = [_plain(name) for name in node.inputs if not name.startswith("^")]
        self.inputs = set(inputs)
        for name in (*inputs, *outputs):
            if name not in self.nodes:
                known = [n for n, node in self.nodes.items() if node.operator not in ("Const",)]
                raise ModelFileError(
                    f"{where}: there is no node {name!r}; the last ones are {', '.join(known[-3:])}"
                )
        read_by = {_base(name) for node in nodes for name in node.inputs}
        self.outputs = list(outputs) or [
            node.name for node in nodes
            if node.name not in read_by and node.operator not in _ASIDE
        ]  # fmt: skip
        if not self.outputs:
            raise ModelFileError(f"{where}: no node computes anything; is it a frozen graph?")
        self.results: dict[str, list[Operand]] = {}

    def graph(self) -> Graph:
        """Return the graph."""
        order = self._ordered()
        computed = (node for node in reversed(order) if not self._is_input(node))
        places = ((node.operator, f"node {node.name!r}") for node in computed)
        advice = "outputs= and inputs= read a part of a graph"
        check_supported(self.where, "operators", places, TABLE, advice)
        self.net.uses = collections.Counter(name for node in order for name in self._reads(node))
        for node in order:
            if self._is_input(node):
                self.results[node.name] = [self._input(node)]
            else:
                left_out: Operand = np.zeros(0, np.float32)
                inputs = [self._operand(name) if name else left_out for name in node.inputs]
                result = TABLE[node.operator](Call(self.net, node, inputs, node.inputs))
                self.results[node.name] = result if isinstance(result, list) else [result]
        return self.net.build.graph(self._output(name) for name in self.outputs)

    def _is_input(self, node: NodeDef) -> bool:
        return node.name in self.inputs or node.operator in _INPUTS

    def _reads(self, node: NodeDef) -> Iterable[str]:
        return [] if self._is_input(node) else filter(None, node.inputs)

    def _ordered(self) -> list[NodeDef]:
        """Return the nodes that the outputs need, each after its inputs."""
        order: list[NodeDef] = []
        state: dict[str, int] = {}
        stack = [(name, False) for name in reversed(self.outputs)]
        while stack:
            name, leaving = stack.pop()
            if leaving:
                state[name] = 2
                order.append(self.nodes[name])
                continue
            if state.get(name) == 2:
                continue
            if state.get(name) == 1:
                raise ModelFileError(
                    f"{self.where}: node {name!r} needs its own result; freeze the graph again"
                )
            node = self.nodes.get(name)
            if node is None:
                raise ModelFileError(
                    f"{self.where}: nothing computes {name!r}; freeze the graph again"
                )
            if not self._is_input(node):
                node = self.nodes[name] = recognised(node, self.nodes) or node
            state[name] = 1
            stack.append((name, True))
            stack += [
                (base, False)
                for read_name in self._reads(node)
                if state.get(base := _base(read_name)) != 2
            ]
        return order

    def _operand(self, name: str) -> Operand:
        base, _, place = name.partition(":")
        results, i = self.results[base], int(place or 0)
        if i >= len(results):
            raise ModelFileError(f"{self.where}: node {base!r} has no result {i} that is supported")
        return results[i]

    def _input(self, node: NodeDef) -> Value:
        if node.operator.startswith("Decode"):
            name = self.net.build.input(node.name, (None, None, None), "uint8")
            return Value(name, 3)
        shape = node.get("shape") if node.operator == "Placeholder" else None
        dtype = node.dtype() if node.operator == "Placeholder" else np.dtype(np.float32)
        if shape is not None and len(shape):
            shape = (None, *shape[1:])
        kind = "float32" if dtype.kind == "f" else dtype.name
        rank = None if shape is None else len(shape)
        return Value(self.net.build.input(node.name, shape, kind), rank)

    def _output(self, name: str) -> str:
        return self.net.build.last(self.net.value(self._operand(name), name)).name


def _plain(name: str) -> str:
    return name.removesuffix(":0")


def _base(name: str) -> str:
    return name.partition(":")[0]
