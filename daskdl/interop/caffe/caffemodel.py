"""The weights of a caffemodel by the names of their layers, of both versions of the format."""

from __future__ import annotations

import math

import numpy as np

from daskdl.errors import ModelFileError
from daskdl.interop.guard import damaged
from daskdl.interop.protobuf import BYTES, Fields, Span
from daskdl.tensor import Array

#: NetParameter: the layers of version 1 and 2. In these: the fields of name and blobs.
_LAYERS = {2: (4, 6), 100: (1, 7)}
#: BlobProto: the lengths of old files, float data, shape, double data.
_LENGTHS, _FLOATS, _SHAPE, _DOUBLES = (1, 2, 3, 4), 5, 7, 8
#: Layers that a file holds at most, and blobs of a layer.
_MOST, _BLOBS = 100_000, 100


def read(data: bytes, where: str) -> dict[str, list[Array]]:
    """Return the blobs of each layer that has some, views of the file's bytes.

    Raises a ModelFileError when the file is damaged, or a blob's shape and numbers do not fit.
    """
    fields = Fields(data, where, _MOST * 10)
    blobs_of: dict[str, list[Array]] = {}
    layers = 0
    for number, wire, value in fields.of():
        if number not in _LAYERS or wire != BYTES:
            continue
        layers += 1
        name_field, blobs_field = _LAYERS[number]
        name, blobs = "", []
        for inner, kind, part in fields.of(value):
            if inner == name_field:
                name = fields.text(part)
            elif inner == blobs_field and kind == BYTES:
                blobs.append(part)
            if layers > _MOST or len(blobs) > _BLOBS:
                raise ModelFileError(
                    f"{where}: more than {_MOST} layers or {_BLOBS} blobs of one; it was made to "
                    "take memory, or is damaged"
                )
        if blobs:
            blobs_of[name] = [_blob(fields, blob, f"{where}: layer {name!r}") for blob in blobs]
    if not layers:
        raise ModelFileError(f"{where}: there are no layers in it; is it a caffemodel?")
    return blobs_of


def _blob(fields: Fields, message: Span, where: str) -> Array:
    lengths, shape, old = [0, 0, 0, 0], None, False
    pieces: list[Array] = []
    for number, wire, value in fields.of(message):
        if number in _LENGTHS:
            lengths[number - 1], old = fields.integers(wire, value)[0], True
        elif number == _SHAPE:
            shape = [
                n for i, kind, part in fields.of(value) if i == 1
                for n in fields.integers(kind, part)
            ]  # fmt: skip
        elif number in (_FLOATS, _DOUBLES):
            if wire != BYTES:
                raise ModelFileError(f"{where}: numbers one by one are not supported; save it anew")
            kind = np.dtype("<f4" if number == _FLOATS else "<f8")
            if (value.stop - value.start) % kind.itemsize:
                raise damaged(where, "a blob ends within a number")
            count = (value.stop - value.start) // kind.itemsize
            pieces.append(np.frombuffer(fields.data, kind, count, value.start))
    flat = (
        pieces[0] if len(pieces) == 1 else np.concatenate(pieces) if pieces else np.zeros(0, "f4")
    )
    if shape is None:
        shape = lengths if old else [flat.size]
    if any(n < 0 for n in shape) or len(shape) > 32 or math.prod(shape) != flat.size:
        raise damaged(
            where,
            f"expected {math.prod(shape)} numbers for a blob of shape {shape[:8]}, found "
            f"{flat.size}",
        )
    return flat.reshape(shape)
