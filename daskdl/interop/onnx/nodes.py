"""Nodes of an ONNX graph: their attributes, what they read, their order and their names."""

from __future__ import annotations

import collections
import functools
import heapq
from collections.abc import Iterator
from typing import Any

from daskdl.errors import ModelFileError
from daskdl.interop.building import attribute_name, channels_second
from daskdl.interop.guard import check_keys
from daskdl.nn.core.nodes import Node, Subgraph
from daskdl.nn.operators import KEYS

#: Attributes of old versions of which one value is known.
_ONLY = {"BatchNormalization.spatial": 1, "Scan.directions": 0}


@functools.cache
def _standard() -> dict[str, frozenset[str]]:
    """Return the attributes of each operator of the standard, of all versions."""
    import onnx

    attributes: dict[str, set[str]] = collections.defaultdict(set)
    for schema in onnx.defs.get_all_schemas_with_history():
        if not schema.domain:
            attributes[schema.name].update(schema.attributes)
    return {name: frozenset(names) for name, names in attributes.items()}


def check_attributes(node: Any, operator: str, where: str) -> None:
    """Refuse attributes that the operator does not have, or has in another meaning here."""
    where = f"{where}: node {node.name or next(iter(node.output), '')!r}, {operator}"
    known = KEYS[operator] if operator in KEYS else _standard().get(operator, frozenset())
    check_keys(where, {a.name: a for a in node.attribute}, known)
    for attribute in node.attribute:
        wanted = _ONLY.get(f"{operator}.{attribute.name}")
        values = list(attribute.ints) or [attribute.i]
        if wanted is not None and any(value != wanted for value in values):
            raise ModelFileError(
                f"{where}: {attribute.name}: expected {wanted}, found {values}; export the "
                "model for a newer version of the operator set"
            )


def in_order(nodes: list[Node], known: set[str]) -> list[Node]:
    """Return nodes, each behind those whose results it reads; in the file's order where it can be.

    What reads a result that nothing computes comes last, and is told by the graph.
    """
    made = {name for node in nodes for name in node.outputs if name}
    waits = [[n for n in dict.fromkeys(reads(node)) if n in made and n not in known]
             for node in nodes]  # fmt: skip
    readers: dict[str, list[int]] = collections.defaultdict(list)
    for i, names in enumerate(waits):
        for name in names:
            readers[name].append(i)
    counts = [len(names) for names in waits]
    ready = [i for i, count in enumerate(counts) if not count]
    order: list[int] = []
    while ready:
        i = heapq.heappop(ready)
        order.append(i)
        for name in nodes[i].outputs:
            for reader in readers.pop(name, ()):
                counts[reader] -= 1
                if not counts[reader]:
                    heapq.heappush(ready, reader)
    left = sorted(set(range(len(nodes))) - set(order))
    return [nodes[i] for i in (*order, *left)]


def reads(node: Node) -> Iterator[str]:
    """Yield the names that a node and the bodies in it read."""
    yield from node.inputs
    for _, value in node.attributes:
        if isinstance(value, Subgraph):
            yield from value.outputs
            for inner in value.nodes:
                yield from reads(inner)


def add_uses(nodes: Any, uses: dict[str, list[tuple[str, int]]]) -> None:
    """Add which operators read each name, and as which of their inputs."""
    for node in nodes:
        for i, name in enumerate(node.inputs):
            if name:
                uses[name].append((node.operator, i))
        for _, value in node.attributes:
            if isinstance(value, Subgraph):
                add_uses(value.nodes, uses)
                for name in value.outputs:
                    uses[name].append(("", 0))


def is_filters(shape: tuple[int, ...], uses: list[tuple[str, int]]) -> bool:
    """Whether weights are the filters of convolutions only."""
    return len(shape) > 2 and all(op in ("Conv", "ConvTranspose") and i == 1 for op, i in uses)


def free_names(held: dict[str, Any], taken: set[str]) -> dict[str, str]:
    """Return names for parameters and buffers that are no attributes of a module."""
    names, taken = {}, set(taken)
    for name in held:
        names[name] = attribute_name(name, taken)
        taken.add(names[name])
    return names


def with_names(node: Node, names: dict[str, str]) -> Node:
    """Return a node that reads values under other names."""
    attributes = []
    for name, value in node.attributes:
        if isinstance(value, Subgraph):
            inner = {k: v for k, v in names.items() if k not in value.inputs}
            value = value._replace(
                outputs=tuple(inner.get(n, n) for n in value.outputs),
                nodes=tuple(with_names(n, inner) for n in value.nodes),
            )
        attributes.append((name, value))
    inputs = tuple(names.get(n, n) for n in node.inputs)
    return Node(node.operator, inputs, node.outputs, tuple(attributes))


def images_in(inputs: list[Any], nodes: list[Node]) -> tuple[list[Any], list[Node]]:
    """Let inputs of more than two axes come with their channels last."""
    taken, lead, names = [], [], {}
    for name, dtype, shape in inputs:
        if shape is None or len(shape) < 3:
            taken.append((name, dtype, shape))
            continue
        ndim = len(shape)
        names[name] = f"{name}/first"
        lead.append(channels_second(name, names[name], ndim))
        taken.append((name, dtype, (shape[0], *shape[2:], shape[1])))
    return taken, [*lead, *(with_names(node, names) for node in nodes)]
