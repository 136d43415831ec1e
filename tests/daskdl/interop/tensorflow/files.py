"""Frozen graphs, written by hand: the fields of a GraphDef that tests need."""

from __future__ import annotations

import struct

import numpy as np

from daskdl.interop.tensorflow.reader import from_bytes
from tests.daskdl.interop.caffe.files import field, varint

TYPES = {"float32": 1, "float64": 2, "int32": 3, "uint8": 4, "int64": 9, "bool": 10, "float16": 19}


def number(i, value):
    return varint(i << 3) + varint(value)


def shape(lengths):
    return b"".join(field(2, number(1, n)) for n in lengths)


def tensor(array):
    array = np.asarray(array)
    kind = number(1, TYPES[array.dtype.name])
    return kind + field(2, shape(array.shape)) + field(4, array.tobytes())


def attribute(value):
    """Return the AttrValue of a bool, int, float, text, list of int, array, dtype or shape."""
    if isinstance(value, bool):
        return number(5, value)
    if isinstance(value, int):
        return number(3, value)
    if isinstance(value, float):
        return varint(4 << 3 | 5) + struct.pack("<f", value)
    if isinstance(value, str):
        return field(2, value.encode())
    if isinstance(value, list):
        return field(1, field(3, b"".join(map(varint, value))))
    if isinstance(value, np.ndarray):
        return field(8, tensor(value))
    if isinstance(value, np.dtype):
        return number(6, TYPES[value.name])
    return field(7, shape(value))


def node(name, operator, inputs=(), **attributes):
    data = field(1, name.encode()) + field(2, operator.encode())
    data += b"".join(field(3, i.encode()) for i in inputs)
    for key, value in attributes.items():
        data += field(5, field(1, key.encode()) + field(2, attribute(value)))
    return field(1, data)


F4 = np.dtype("float32")


def placeholder(name, lengths, dtype=F4):
    return node(name, "Placeholder", dtype=np.dtype(dtype), shape=tuple(lengths))


def const(name, array):
    array = np.asarray(array)
    return node(name, "Const", value=array, dtype=array.dtype)


def network(operator, arrays=(), lengths=(-1, 9, 8, 3), **attributes):
    """Return one operator ``y`` of an input x and constants; placeholders come first."""
    names = [f"c{i}" for i in range(len(arrays))]
    data = placeholder("x", lengths)
    data += b"".join(const(n, a) for n, a in zip(names, arrays, strict=True))
    return data + node("y", operator, ["x", *names], T=F4, **attributes)


def graph(data, **options):
    return from_bytes(data, "g.pb", **options).eval()
