"""Model files of any format that is known, by their endings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from daskdl import models
from daskdl.nn.module import Module


def load(path: str | Path, **options: Any) -> Module:
    """Read a model: a file of :func:`daskdl.save`, or with the ending ``.onnx`` one of ONNX.

    Parameters
    ----------
    path : path or URL
    **options :
        Of :func:`daskdl.interop.onnx.load`, for ONNX.

    Raises
    ------
    ModelFileError
        With one sentence, when the file is missing, damaged or of something that is not known.
    """
    if str(path).endswith(".onnx"):
        from daskdl.interop import onnx

        return onnx.load(path, **options)
    return models.load(path, **options)
