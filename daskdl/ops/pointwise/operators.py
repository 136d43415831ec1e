"""Python's operators on tensors, and a few methods of numpy's arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from daskdl.errors import ShapeError
from daskdl.ops.pointwise.arithmetic import add, divide, matmul, multiply, subtract
from daskdl.ops.pointwise.elementwise import power
from daskdl.ops.shape import reduce, shape
from daskdl.tensor import Array, Tensor, op

__all__ = ["negative"]


@op
def negative(x: Array):
    """Negate, -x.

    Examples
    --------
    >>> ops.negative(np.array([1.0, -2.0])).data
    array([-1.,  2.])
    """
    return np.negative(x), lambda dy: (np.negative(dy),)


def _reversed(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda a, b: function(b, a)


def _getitem(x: Tensor, index: Any) -> Any:
    """Index as numpy does: with integers, slices, None, an ellipsis and arrays of ids or bools."""
    parts = index if isinstance(index, tuple) else (index,)
    arrays = tuple(part.data if isinstance(part, Tensor) else part for part in parts)
    try:
        return shape.take(x, index=arrays)
    except IndexError as error:
        if all(isinstance(part, int) for part in arrays):
            raise  # this ends a loop over a tensor
        raise ShapeError(
            f"index: expected one of shape {x.shape}, found {index!r} ({error})"
        ) from None


def _pow(x: Tensor, exponent: Any) -> Any:
    if not isinstance(exponent, (int, float)):
        return NotImplemented
    return power(x, exponent=exponent)


def _reshape(x: Tensor, *sizes: Any) -> Any:
    """Return the same numbers in another shape, given as a tuple or one by one."""
    return shape.reshape(x, shape=sizes[0] if isinstance(sizes[0], tuple) else sizes)


def _transpose(x: Tensor, *axes: Any) -> Any:
    """Return the axes in another order, given as a tuple or one by one; by default reversed."""
    order = axes[0] if axes and isinstance(axes[0], tuple) else axes
    return shape.transpose(x, axes=order or tuple(range(x.ndim))[::-1])


def _sum(x: Tensor, axis: reduce.Axes = None, keepdims: bool = False) -> Any:
    """Return the sum over some axes, by default all."""
    return reduce.sum(x, axis=axis, keepdims=keepdims)


def _mean(x: Tensor, axis: reduce.Axes = None, keepdims: bool = False) -> Any:
    """Return the mean over some axes, by default all."""
    return reduce.mean(x, axis=axis, keepdims=keepdims)


for _name, _function in (
    ("add", add),
    ("sub", subtract),
    ("mul", multiply),
    ("truediv", divide),
    ("matmul", matmul),
):
    setattr(Tensor, f"__{_name}__", _function)
    setattr(Tensor, f"__r{_name}__", _reversed(_function))

for _name, _function in (
    ("__neg__", negative),
    ("__pow__", _pow),
    ("__getitem__", _getitem),
    ("reshape", _reshape),
    ("transpose", _transpose),
    ("sum", _sum),
    ("mean", _mean),
):
    setattr(Tensor, _name, _function)
