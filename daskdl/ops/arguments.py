"""Checks of operations' arguments, and operations of one array that a table describes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from daskdl.errors import ShapeError
from daskdl.tensor import Array, op

#: Dtypes that kernels are compiled for. Not types: dtypes compare faster.
FLOATS = (np.dtype(np.float32), np.dtype(np.float64))


def check_floats(operation: str, x: Array, *, axes: int | None = None) -> None:
    """Raise ShapeError unless x is float32 or float64 with ``axes`` axes, by default 1 or more."""
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
    """Raise ShapeError unless each argument is None or has this shape and the dtype of x."""
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


def of_one_array(
    module: str, name: str, meaning: str, function: Callable[[Array], Any], at: str, values: str
) -> Callable[[Any], Any]:
    """Make an operation from a function from an array to (result, backward), see :func:`op`.

    The example in its docstring shows its ``values`` at the numbers ``at``.
    """

    def operation(x: Array) -> Any:
        return function(x)

    operation.__name__ = operation.__qualname__ = name
    operation.__module__ = module
    operation.__doc__ = f"""{meaning}

    Examples
    --------
    >>> ops.{name}(np.array([{at}], np.float32)).data.round(3)
    array([{values}], dtype=float32)
    """
    return op(operation)
