"""Read ONNX files as :class:`daskdl.nn.Graph`, after a check of their bytes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from daskdl.errors import ModelFileError, needed
from daskdl.interop.guard import damaged, existing, reading
from daskdl.interop.onnx.conversion import Conversion
from daskdl.interop.protobuf import BYTES, Fields, Span
from daskdl.nn.core.graph import Graph

#: By kind of message: its fields that are messages, and their kinds.
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
#: Fields of packed integers; each integer takes up to eight bytes of memory.
_INTEGERS = {("tensor", 1), ("tensor", 5), ("tensor", 7), ("tensor", 11), ("attribute", 8)}
#: Bytes of memory for a message, a text and a number.
_MESSAGE, _TEXT, _NUMBER = 256, 64, 8
DEEPEST = 60
#: Supported versions of the operator set.
OLDEST, NEWEST = 1, 28


def check_bytes(data: bytes, where: str) -> None:
    """Check a file's bytes before they are parsed.

    Raises ModelFileError when a length exceeds its message, messages are nested too deep, or
    reading would take more than twice the file's size plus 40 MB.
    """
    allowed, cost = 2 * len(data) + 40_000_000, 0
    fields = Fields(data, where, most=allowed)
    stack = [("model", Span(0, len(data)), 0)]
    while stack:
        kind, message, depth = stack.pop()
        if depth > DEEPEST:
            raise damaged(where, f"messages lie in each other deeper than {DEEPEST} times")
        for field, wire, value in fields.of(message):
            inner = _MESSAGES[kind].get(field)
            if wire != BYTES:
                cost += _NUMBER
            elif inner:
                cost += _MESSAGE
                stack.append((inner, value, depth + 1))
            else:
                length = value.stop - value.start
                cost += _TEXT + length * (_NUMBER if (kind, field) in _INTEGERS else 1)
            if cost > allowed:
                raise ModelFileError(
                    f"{where}: reading its {len(data)} bytes would take more than {allowed} bytes "
                    "of memory; it was made to do so, or is damaged"
                )


def load(path: str | Path, *, channels_last: bool = False) -> Graph:
    """Read an ONNX file as a graph; it predicts, trains and saves as any module does.

    Weights of floats become parameters; running statistics of batch normalisation become buffers;
    settings of operators, integers and float64 stay constants. Filters have channels last, as in
    :class:`daskdl.nn.Conv2d`. float16 is computed in float32. The first axis of inputs is free.

    Parameters
    ----------
    path : path
        External weights are read from the same folder.
    channels_last : bool
        Whether inputs and results are images (N, H, W, C), as in the rest of daskdl; by default as
        in the file, usually (N, C, H, W).

    Raises
    ------
    ModelFileError
        When the file is missing, damaged or has operators or types that are not supported.
    MissingExtraError
        Without the package ``onnx``, which ``pip install 'daskdl[onnx]'`` brings.
    """
    path = existing(path, "ONNX file")
    if os.path.getsize(path) >= 1 << 31:
        raise ModelFileError(
            f"{path}: expected less than 2 GB, protobuf's limit; larger models keep their weights "
            "in files beside it"
        )
    # The bytes have no name here, so that read() can free them as soon as they are parsed.
    return read(path.read_bytes(), str(path), path.parent, channels_last).eval()


def read(data: bytes, where: str, folder: Path | None = None, channels_last: bool = False) -> Graph:
    """Read the bytes of an ONNX file; ``where`` names it in errors."""
    with needed("ONNX files need the package onnx; pip install 'daskdl[onnx]'"):
        import onnx
        from google.protobuf.message import DecodeError
    check_bytes(data, where)
    try:
        model = onnx.ModelProto.FromString(data)
    except (DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise damaged(where, f"not a whole ONNX file ({error})") from error
    del data
    return from_proto(model, where, folder, channels_last)


def from_proto(
    model: Any, where: str, folder: Path | None = None, channels_last: bool = False
) -> Graph:
    """Return the graph of an ``onnx.ModelProto``."""
    opset = _opset(model, where)
    if model.functions:
        raise ModelFileError(
            f"{where}: it has functions of its own ({model.functions[0].name}, ...); "
            "onnx.inliner.inline_local_functions puts their nodes in place"
        )
    with reading(where, "ONNX"):
        conversion = Conversion(model.graph, opset, where, folder)
        return conversion.graph(channels_last)


def _opset(model: Any, where: str) -> int:
    versions = [o.version for o in model.opset_import if o.domain in ("", "ai.onnx")]
    if not model.HasField("graph"):
        raise ModelFileError(f"{where}: there is no graph in it; is it an ONNX file?")
    opset = versions[0] if versions else 1 if not model.opset_import else NEWEST
    if versions and not OLDEST <= opset <= NEWEST:
        raise ModelFileError(
            f"{where}: expected version {OLDEST} to {NEWEST} of the operator set, found {opset}; "
            "onnx.version_converter changes it"
        )
    return opset
