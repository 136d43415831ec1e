"""Models of other programs, in and out: a folder or a file for each format."""

import importlib
from typing import Any

from daskdl.interop.model_files import load as load
from daskdl.interop.torch_weights import read as read

#: Readers, imported on first use.
_FORMATS = ("caffe", "keras", "onnx", "tensorflow", "torch7", "torch_weights")
__all__ = ["load", "read"]


def __getattr__(name: str) -> Any:
    if name in _FORMATS:
        return importlib.import_module(f"daskdl.interop.{name}")
    raise AttributeError(f"module 'daskdl.interop' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *_FORMATS})
