"""Checks of the arguments of operations on images and rows."""

from __future__ import annotations

import numpy as np

from daskdl.errors import ShapeError
from daskdl.tensor import Array

#: Dtypes that kernels are compiled for. Not types: dtypes compare faster.
FLOATS = (np.dtype(np.float32), np.dtype(np.float64))


def check_floats(operation: str, x: Array, *, axes: int | None = None) -> None:
    """Raise ShapeError unless x is float32 or float64 with so many axes, or with any but none."""
    if axes is None and not x.ndim:
        raise ShapeError(
            f"{operation}: x: expected at least 1 axis, found a scalar; give an array of samples"
        )
    if axes is not None and x.ndim != axes:
        raise ShapeError(f"{operation}: x: expected {axes} axes, found shape {x.shape}")
    if x.dtype not in FLOATS:
        raise ShapeError(
            f"{operation}: x: expected float32 or float64, found {x.dtype}"
            "; x.astype(np.float32) makes it so"
        )


def check_like(operation: str, x: Array, shape: tuple[int, ...], **arguments: Array | None) -> None:
    """Raise ShapeError unless each argument that is given has this shape and the dtype of x."""
    for name, array in arguments.items():
        if array is None:
            continue
        if array.shape != shape:
            raise ShapeError(
                f"{operation}: {name}: expected shape {shape} for x of shape {x.shape}, found "
                f"{array.shape}"
            )
        if array.dtype != x.dtype:
            raise ShapeError(f"{operation}: {name}: expected {x.dtype} as x, found {array.dtype}")
