"""The protobuf encoding of an ONNX file, walked through before anything is made of it.

A parser would allocate what a file claims: two bytes are an empty node, one byte an integer of
eight. The walk adds up what parsing will cost and stops at a file that is out of proportion.
"""

from __future__ import annotations

from daskdl.errors import ModelFileError
from daskdl.interop.guard import damaged
from daskdl.interop.protobuf import varint

#: By kind of message: fields that are messages, by the kind these are of.
_MESSAGES: dict[str, dict[int, str]] = {
    "model": {7: "graph", 8: "other", 14: "other", 20: "training", 25: "function", 26: "other"},
    "training": {1: "graph", 2: "graph", 3: "other", 4: "other"},
    "function": {7: "node", 9: "other", 11: "attribute", 12: "value", 14: "other"},
    "graph": {1: "node", 5: "tensor", 11: "value", 12: "value", 13: "value", 14: "other",
              15: "sparse", 16: "other"},
    "node": {5: "attribute", 9: "other", 10: "other"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 14: "type", 15: "type",
                  22: "sparse", 23: "sparse"},
    "tensor": {3: "other", 13: "other", 16: "other"},
    "sparse": {1: "tensor", 2: "tensor"},
    "value": {2: "type", 4: "other"},
    "type": {1: "tensortype", 4: "wrapped", 5: "wrapped", 8: "tensortype", 9: "wrapped"},
    "tensortype": {2: "shape"},
    "wrapped": {1: "type", 2: "type"},
    "shape": {1: "other"},
    "other": {},
}  # fmt: skip
#: Packed integers, which take up to eight bytes each once they are read.
_INTEGERS = {("tensor", 1), ("tensor", 5), ("tensor", 7), ("tensor", 11), ("attribute", 8)}
#: Bytes of memory that a message, a text and a number take.
_MESSAGE, _TEXT, _NUMBER = 256, 64, 8
DEEPEST = 60


def check(data: bytes, path: str) -> None:
    """Walk through a file's bytes.

    A ModelFileError says when a length goes beyond what holds it, messages lie too deep in each
    other, or reading would take more than twice the file's size and 40 MB.
    """
    allowed = 2 * len(data) + 40_000_000
    cost, stack = 0, [("model", 0, len(data), 0)]
    while stack:
        kind, at, end, depth = stack.pop()
        if depth > DEEPEST:
            raise damaged(path, f"messages lie in each other deeper than {DEEPEST} times")
        messages = _MESSAGES[kind]
        while at < end:
            key, at = varint(data, at, end, path)
            field, wire = key >> 3, key & 7
            if wire == 0:
                _, at = varint(data, at, end, path)
                cost += _NUMBER
            elif wire in (1, 5):
                at += 8 if wire == 1 else 4
                cost += _NUMBER
            elif wire == 2:
                length, at = varint(data, at, end, path)
                if length > end - at:
                    raise damaged(
                        path, f"a part of {length} bytes goes beyond the {end - at} that are left"
                    )
                if field in messages:
                    cost += _MESSAGE
                    stack.append((messages[field], at, at + length, depth + 1))
                else:
                    cost += _TEXT + length * (_NUMBER if (kind, field) in _INTEGERS else 1)
                at += length
            else:
                raise damaged(path, f"not an ONNX file: a field of unknown kind {wire}")
            if at > end:
                raise damaged(path, "the file ends within a number")
            if cost > allowed:
                raise ModelFileError(
                    f"{path}: reading its {len(data)} bytes would take more than {allowed} bytes "
                    "of memory; it was made to do so, or is damaged"
                )
