"""Caffe's files, written by hand: the few fields of protobuf that a caffemodel's weights need."""

from __future__ import annotations

import numpy as np

from daskdl.interop.caffe.reader import read


def varint(n):
    n &= (1 << 64) - 1
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def field(number, payload):
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def blob(array, old=False):
    """Return a BlobProto: with a shape, or with four lengths as in old files."""
    array = np.asarray(array, "<f4")
    data = field(5, array.tobytes())
    if old:
        lengths = (1,) * (4 - array.ndim) + array.shape
        return b"".join(varint(i << 3) + varint(n) for i, n in enumerate(lengths, 1)) + data
    return field(7, field(1, b"".join(map(varint, array.shape)))) + data


def caffemodel(weights, old=False):
    """Return a NetParameter of version 2 or 1 with the blobs of each layer."""
    layer, name, blobs = (2, 4, 6) if old else (100, 1, 7)
    return b"".join(
        field(
            layer, field(name, key.encode()) + b"".join(field(blobs, blob(a, old)) for a in arrays)
        )
        for key, arrays in weights.items()
    )


def network(body, shapes=((2, 3, 9, 8),)):
    """Return a prototxt: inputs x, y, ... of these shapes, and the layers of ``body``."""
    lines = []
    for name, shape in zip("xyz", shapes, strict=False):
        dims = " ".join(f"dim: {n}" for n in shape)
        lines.append(
            f'layer {{ name: "{name}" type: "Input" top: "{name}" '
            f"input_param {{ shape {{ {dims} }} }} }}"
        )
    return "\n".join([*lines, body])


def layer(kind, settings="", bottom="x", top="out", name="l"):
    bottoms = " ".join(f'bottom: "{b}"' for b in bottom.split())
    tops = " ".join(f'top: "{t}"' for t in top.split())
    return f'layer {{ name: "{name}" type: "{kind}" {bottoms} {tops} {settings} }}'


def graph(text, weights=None, old=False, **options):
    """Read a network from its text and weights."""
    data = caffemodel(weights or {"none": [np.zeros(1)]}, old)
    return read(text.encode(), data, "n.prototxt", "n.caffemodel", **options).eval()
