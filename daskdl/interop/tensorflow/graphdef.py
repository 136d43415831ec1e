"""Read the nodes of a GraphDef, their attributes and tensors, from a file's bytes."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from daskdl.errors import ModelFileError
from daskdl.interop.protobuf import BYTES, VARINT, Fields, Span, signed
from daskdl.tensor import Array

#: By TensorFlow's number: the dtype, and the field of a TensorProto for unpacked numbers.
DTYPES: dict[int, tuple[str, int]] = {
    1: ("<f4", 5), 2: ("<f8", 6), 3: ("<i4", 7), 4: ("|u1", 7), 5: ("<i2", 7), 6: ("|i1", 7),
    9: ("<i8", 10), 10: ("|b1", 11), 19: ("<f2", 13), 22: ("<u4", 16), 23: ("<u8", 17),
}  # fmt: skip
#: Largest number of nodes in a file, and of inputs or attributes of a node.
_MOST, _PARTS = 25_000, 2_000


@dataclass
class NodeDef:
    """One node: its operator, its inputs, and the places of its settings in the file."""

    name: str
    operator: str
    inputs: list[str]
    attributes: dict[str, Span]
    fields: Fields

    @property
    def place(self) -> str:
        """The file and the node, for error messages."""
        return f"{self.fields.where}: node {self.name!r}, {self.operator}"

    def fail(self, sentence: str) -> NoReturn:
        """Raise a ModelFileError that names the node."""
        raise ModelFileError(f"{self.place}: {sentence}")

    def get(self, name: str, default: Any = None) -> Any:
        """Return an attribute: text, a number (also for a bool or dtype), integers or a shape.

        Unknown lengths of a shape are None; a shape of unknown rank is the default. A tensor is its
        place in the file.
        """
        fields = self.fields
        for number, wire, value in fields.of(self.attributes.get(name, Span(0, 0))):
            if number == 2:
                return fields.text(value)
            if number in (3, 5, 6):
                return fields.integers(wire, value)[0]
            if number == 4:
                return fields.number(wire, value)
            if number == 1 and wire == BYTES:
                lists = (fields.integers(k, part) for i, k, part in fields.of(value) if i == 3)
                return tuple(itertools.chain.from_iterable(lists))
            if number == 7 and wire == BYTES:
                lengths = _shape(fields, value)
                return default if lengths is None else tuple(n if n >= 0 else None for n in lengths)
            if number == 8 and wire == BYTES:
                return value
        return default

    def dtype(self, name: str = "dtype") -> np.dtype[Any]:
        """Return an attribute that is a dtype, by default float32."""
        return np.dtype(self.kind(self.get(name, 1))[0])

    def kind(self, number: int) -> tuple[str, int]:
        """Return the dtype and the field for TensorFlow's number of a dtype."""
        if number not in DTYPES:
            self.fail(f"numbers of TensorFlow's type {number} are not supported")
        return DTYPES[number]

    def tensor(self) -> Array:
        """Return the node's array, if possible a view of the file's bytes."""
        span = self.get("value")
        if not isinstance(span, Span):
            self.fail("expected numbers, found none")
        return _tensor(self, span)


def read(data: bytes, where: str) -> list[NodeDef]:
    """Return the nodes of a file; a ModelFileError if it is damaged, or no frozen graph."""
    fields = Fields(data, where, most=2_000_000)
    nodes: list[NodeDef] = []
    for number, wire, value in fields.of():
        if number == 1 and wire == BYTES:
            nodes.append(_node(fields, value))
            if len(nodes) > _MOST:
                raise ModelFileError(f"{where}: expected up to {_MOST} nodes, found more")
        elif number == 2 and not nodes:
            raise ModelFileError(
                f"{where}: it is a SavedModel or another file of TensorFlow; expected a frozen "
                "GraphDef, with its variables as constants"
            )
    if not nodes:
        raise ModelFileError(f"{where}: there are no nodes in it; is it a frozen graph?")
    return nodes


def _node(fields: Fields, span: Span) -> NodeDef:
    node = NodeDef("", "", [], {}, fields)
    for number, wire, value in fields.of(span):
        if number == 1:
            node.name = fields.text(value)
        elif number == 2:
            node.operator = fields.text(value)
        elif number == 3:
            node.inputs.append(fields.text(value))
        elif number == 5 and wire == BYTES:
            key, value_span = "", None
            for inner, _, part in fields.of(value):
                if inner == 1:
                    key = fields.text(part)
                elif inner == 2 and isinstance(part, Span):
                    value_span = part
            if value_span is not None:
                node.attributes[key] = value_span
        if len(node.inputs) > _PARTS or len(node.attributes) > _PARTS:
            node.fail(f"expected up to {_PARTS} inputs and attributes")
    return node


def _shape(fields: Fields, span: Span) -> list[int] | None:
    """Return lengths, -1 for unknown ones; None for a shape of unknown rank."""
    lengths: list[int] = []
    for number, wire, value in fields.of(span):
        if number == 3 and wire == VARINT and value:
            return None
        if number == 2 and wire == BYTES:
            size = 0
            for inner, kind, part in fields.of(value):
                if inner == 1 and kind == VARINT:
                    size = signed(part)
            lengths.append(size)
        if len(lengths) > 32:
            raise ModelFileError(f"{fields.where}: expected up to 32 axes, found more")
    return lengths


def _tensor(node: NodeDef, span: Span) -> Array:
    fields, dtype, lengths, content = node.fields, 1, [0], None
    pieces: list[tuple[int, int, Any]] = []
    for number, wire, value in fields.of(span):
        if number == 1 and wire == VARINT:
            dtype = value
        elif number == 2 and wire == BYTES:
            lengths = _shape(fields, value) or []
        elif number == 4 and wire == BYTES:
            content = value
        elif number >= 5:
            pieces.append((number, wire, value))
            if len(pieces) > 100_000:
                node.fail("expected numbers side by side, found them one by one")
    name, field = node.kind(dtype)
    kind = np.dtype(name)
    if any(n < 0 for n in lengths):
        node.fail(f"expected lengths of 0 or more, found {lengths}")
    count = math.prod(lengths)
    if content is not None:
        size = content.stop - content.start
        if size != count * kind.itemsize:
            node.fail(f"expected {count} numbers for shape {lengths}, found {size} bytes")
        flat = np.frombuffer(fields.data, kind, count, content.start)
    else:
        flat = _numbers(node, [p for p in pieces if p[0] == field], kind)
        if flat.size != count:
            flat = _repeated(node, flat, count, lengths)
    array = flat.reshape(lengths)
    return array.astype(np.float32) if kind == np.float16 else array


def _numbers(node: NodeDef, pieces: list[tuple[int, int, Any]], kind: np.dtype[Any]) -> Array:
    """Return the numbers of a TensorProto's field, single or packed."""
    fields, parts = node.fields, []
    for _, wire, value in pieces:
        if kind.kind == "f" and kind.itemsize > 2:
            size = kind.itemsize
            data = fields.bytes(value) if wire == BYTES else value
            if not isinstance(data, bytes) or len(data) % size:
                node.fail("a tensor ends within a number")
            parts.append(np.frombuffer(data, kind))
            continue
        numbers = np.array(fields.integers(wire, value, 1 << 20), np.int64)
        small = numbers.astype(np.uint16).view(np.float16) if kind == np.float16 else numbers
        parts.append(small.astype(kind))
    return np.concatenate(parts) if parts else np.zeros(0, kind)


def _repeated(node: NodeDef, flat: Array, count: int, lengths: list[int]) -> Array:
    """Return a tensor from its first numbers in the file; the last one repeats up to its size."""
    if count > max(1 << 16, len(node.fields.data) // 4) or flat.size > count:
        node.fail(f"expected {count} numbers for shape {lengths}, found {flat.size}")
    last = flat[-1] if flat.size else 0
    return np.concatenate([flat, np.full(count - flat.size, last, flat.dtype)])
