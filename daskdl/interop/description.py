"""Describe a model file of any known kind as plain data, for ``daskdl show``."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from daskdl import models
from daskdl.errors import DataError, ModelFileError
from daskdl.interop.model_files import load
from daskdl.interop.torch_weights import read
from daskdl.nn.core.modelfile import UnknownModuleError, read_metadata
from daskdl.nn.core.module import Module

#: Endings of files with weights only.
WEIGHTS = ("pt", "pth", "bin", "ckpt")
#: Entry points of packages that define modules; they are imported to show their files.
HOMES = "daskdl.modules"


def describe(path: Path) -> dict[str, Any]:
    """Return the contents of a model file.

    Parameters
    ----------
    path : Path
        A model of daskdl (``.safetensors``), ONNX, Caffe, TensorFlow, Keras or Torch7; weights of
        PyTorch (``.pt``, ``.pth``, ``.bin``, ``.ckpt``) or any ``.safetensors``; or a folder with
        one ``.safetensors``, as ``nowcast train`` writes.

    Returns
    -------
    dict
        ``file``, ``kind``, ``parameters`` (their count), ``megabytes`` (size of the file),
        ``metadata``, ``modules`` (text; "" for weights only) and ``shapes`` by name.

    Raises
    ------
    ModelFileError, DataError
        When the file is missing, damaged or of an unknown kind.
    """
    path = _in_folder(path) if path.is_dir() else path
    ending = path.suffix.removeprefix(".").lower()
    if ending in WEIGHTS:
        return _facts(path, f"weights of PyTorch ({ending})", read(path), {})
    if ending != "safetensors":
        return _of_module(path, f"{ending} file", load(path), {})
    try:
        metadata = read_metadata(path)
    except ModelFileError:
        try:  # perhaps weights of another program
            return _facts(path, "weights (safetensors)", read(path), {})
        except DataError:
            pass
        raise
    try:
        module = _module_in(path)
    except UnknownModuleError:  # a class of the user's: its arrays need no code
        kind = "model of daskdl, of modules whose code is elsewhere; its arrays alone"
        return _facts(path, kind, read(path), metadata)
    return _of_module(path, "model of daskdl", module, metadata)


def _module_in(path: Path) -> Module:
    """Load a model of daskdl; modules may be those of packages with the entry point."""
    try:
        return models.load(path)
    except ModelFileError:
        for home in entry_points(group=HOMES):
            home.load()
        return models.load(path)


def _in_folder(folder: Path) -> Path:
    weights = sorted(folder.glob("*.safetensors"))
    if len(weights) != 1:
        raise ModelFileError(
            f"{folder}: expected a model file, or a folder with one *.safetensors, found "
            f"{len(weights)} in it; name the file"
        )
    return weights[0]


def _facts(
    path: Path, kind: str, arrays: Mapping[str, Any], metadata: Mapping[str, Any], modules: str = ""
) -> dict[str, Any]:
    return {
        "file": str(path),
        "kind": kind,
        "parameters": sum(int(a.size) for a in arrays.values()),
        "megabytes": round(path.stat().st_size / 1e6, 3),
        "metadata": dict(metadata),
        "modules": modules,
        "shapes": {name: list(a.shape) for name, a in arrays.items()},
    }


def _of_module(
    path: Path, kind: str, module: Module, metadata: Mapping[str, Any]
) -> dict[str, Any]:
    arrays = {name: parameter.data for name, parameter in module.named_parameters()}
    return _facts(path, kind, arrays, metadata, repr(module))
