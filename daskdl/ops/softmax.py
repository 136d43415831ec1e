"""Softmax and its logarithm along any axis."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from daskdl.errors import ShapeError
from daskdl.kernels.losses import softmax as kernels
from daskdl.ops.activations import check_float
from daskdl.tensor import Array, op

__all__ = ["log_softmax", "softmax"]


@op
def softmax(x: Array, *, axis: int = -1):
    """exp(x) / sum(exp(x)) along ``axis``, without overflow.

    Examples
    --------
    >>> ops.softmax(np.array([-1.0, 0.5, 2.0], np.float32)).data.round(3)
    array([0.039, 0.175, 0.786], dtype=float32)
    """
    return _along("softmax", axis, kernels.softmax, kernels.softmax_gradient, x)


@op
def log_softmax(x: Array, *, axis: int = -1):
    """X - log(sum(exp(x))) along ``axis``, without overflow.

    Examples
    --------
    >>> ops.log_softmax(np.array([[0.0, 0.0]])).data.round(3)
    array([[-0.693, -0.693]])
    """
    return _along("log_softmax", axis, kernels.log_softmax, kernels.log_softmax_gradient, x)


def _along(
    name: str,
    axis: int,
    forward: Callable[[Array], Array],
    gradient: Callable[[Array, Array], Array],
    x: Array,
):
    check_float(name, x)
    if not -x.ndim <= axis < x.ndim:
        raise ShapeError(
            f"{name}: expected an axis of x, whose shape is {x.shape}, found {axis}"
            "; count it from 0, or back from -1"
        )
    y = forward(np.moveaxis(x, axis, -1))

    def backward(dy: Array):
        return (np.moveaxis(gradient(y, np.moveaxis(dy, axis, -1)), -1, axis),)

    return np.moveaxis(y, -1, axis), backward
