"""Model files of any format that is known, by their endings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from daskdl import models
from daskdl.nn.module import Module


def load(path: str | Path, **options: Any) -> Module:
    """Read a model: a file of :func:`daskdl.save`, or one of another program by its ending.

    Parameters
    ----------
    path : path or URL
        ``.onnx`` is read by :func:`daskdl.interop.onnx.load`, ``.prototxt`` by
        :func:`daskdl.interop.caffe.load`, ``.pb`` by :func:`daskdl.interop.tensorflow.load`,
        ``.keras`` and ``.h5`` by :func:`daskdl.interop.keras.load`,
        ``.t7`` by :func:`daskdl.interop.torch7.load`.
    **options :
        Of these functions, such as ``weights="x.caffemodel"``.

    Raises
    ------
    ModelFileError
        With one sentence, when the file is missing, damaged or of something that is not known.

    Examples
    --------
    >>> import daskdl
    >>> daskdl.save(nn.Linear(3, 2), "small.safetensors")
    >>> load("small.safetensors")
    Linear(3, 2)
    """
    ending = str(path).rsplit(".", 1)[-1].lower()
    if ending == "onnx":
        from daskdl.interop import onnx

        return onnx.load(path, **options)
    if ending in ("prototxt", "caffemodel"):
        from daskdl.interop import caffe

        return caffe.load(path, **options)
    if ending == "pb":
        from daskdl.interop import tensorflow

        return tensorflow.load(path, **options)
    if ending in ("keras", "h5", "hdf5"):
        from daskdl.interop import keras

        return keras.load(path, **options)
    if ending == "t7":
        from daskdl.interop import torch7

        return torch7.load(path, **options)
    return models.load(path, **options)
