"""ONNX files read as :class:`daskdl.nn.Graph`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from daskdl.errors import MissingExtraError, ModelFileError
from daskdl.interop.guard import damaged, existing, reading
from daskdl.interop.onnx import wire
from daskdl.interop.onnx.conversion import Conversion
from daskdl.nn.core.graph import Graph

#: Versions of the operator set whose differences are known.
OLDEST, NEWEST = 1, 28


def load(path: str | Path, *, channels_last: bool = False) -> Graph:
    """Read an ONNX file as a graph that predicts, trains and is saved as any module.

    Weights of floats become parameters, running statistics of batch normalisation buffers; what
    sets an operator up, integers and float64 stay constants. Filters lie channels last, as those of
    :class:`daskdl.nn.Conv2d`. float16 is computed in float32. The first axis of inputs is free.

    Parameters
    ----------
    path : path
        Weights in files of their own are read beside it.
    channels_last : bool
        Whether images are taken and given as (N, H, W, C), which the rest of daskdl has; as the
        file says, usually (N, C, H, W), otherwise.

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
    data = path.read_bytes()
    return read(data, str(path), path.parent, channels_last).eval()


def read(data: bytes, where: str, folder: Path | None = None, channels_last: bool = False) -> Graph:
    """Read the bytes of an ONNX file; ``where`` names it in errors."""
    try:
        import onnx
        from google.protobuf.message import DecodeError
    except ImportError as error:
        raise MissingExtraError(
            "ONNX files need the package onnx; pip install 'daskdl[onnx]'"
        ) from error
    wire.check(data, where)
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
