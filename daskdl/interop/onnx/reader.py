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

#: protobuf's kinds of fields that are integers (CPPTYPE_INT32 to UINT64, and ENUM); each integer of
#: a packed field takes up to eight bytes of memory.
_INTEGERS = {1, 2, 3, 4, 8}
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
    from onnx import ModelProto

    allowed, cost = 2 * len(data) + 40_000_000, 0
    fields = Fields(data, where, most=allowed)
    stack: list[tuple[Any, Span, int]] = [(ModelProto.DESCRIPTOR, Span(0, len(data)), 0)]
    while stack:
        kind, message, depth = stack.pop()
        if depth > DEEPEST:
            raise damaged(where, f"messages lie in each other deeper than {DEEPEST} times")
        for number, wire, value in fields.of(message):
            field = kind.fields_by_number.get(number)
            if wire != BYTES:
                cost += _NUMBER
            elif field is not None and field.message_type is not None:
                cost += _MESSAGE
                stack.append((field.message_type, value, depth + 1))
            else:
                packed = field is not None and field.cpp_type in _INTEGERS
                cost += _TEXT + (value.stop - value.start) * (_NUMBER if packed else 1)
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
