"""Arithmetic of two arrays, and casts."""

from __future__ import annotations

from typing import Any

import numpy as np

from daskdl.errors import ShapeError
from daskdl.kernels.products import matmul as products
from daskdl.kernels.vectors.arithmetic import added
from daskdl.tensor import Array, op

__all__ = [
    "add",
    "cast",
    "divide",
    "matmul",
    "multiply",
    "subtract",
]


def unbroadcast(gradient: Array, shape: tuple[int, ...]) -> Array:
    """Sum ``gradient`` over the axes along which an input of ``shape`` was broadcast."""
    if gradient.shape == shape:
        return gradient
    gradient = gradient.sum(axis=tuple(range(gradient.ndim - len(shape))))
    stretched = tuple(i for i, n in enumerate(shape) if n == 1 and gradient.shape[i] != 1)
    return gradient.sum(axis=stretched, keepdims=True) if stretched else gradient


def arrays_of(a: Any, b: Any) -> tuple[Array, Array]:
    """Return both as arrays; a number takes the other's dtype, as in numpy: float32 stays."""
    if isinstance(a, (int, float)):
        b = np.asarray(b)
        return np.asarray(a, np.result_type(b, a)), b
    a = np.asarray(a)
    return a, np.asarray(b, np.result_type(a, b) if isinstance(b, (int, float)) else None)


@op
def add(a: Array, b: Array):
    """Add two arrays, a + b.

    Examples
    --------
    >>> a, b = np.array([1.0, 2.0]), np.array([3.0, -4.0])
    >>> ops.add(a, b).data
    array([ 4., -2.])
    """
    a, b = arrays_of(a, b)
    y = added(a, b)
    return y, lambda dy: (lambda: unbroadcast(dy, a.shape), lambda: unbroadcast(dy, b.shape))


@op
def subtract(a: Array, b: Array):
    """Subtract two arrays, a - b.

    Examples
    --------
    >>> a, b = np.array([1.0, 2.0]), np.array([3.0, -4.0])
    >>> ops.subtract(a, b).data
    array([-2.,  6.])
    """
    a, b = arrays_of(a, b)
    return a - b, lambda dy: (lambda: unbroadcast(dy, a.shape), lambda: unbroadcast(-dy, b.shape))


@op
def multiply(a: Array, b: Array):
    """Multiply two arrays, a * b.

    Examples
    --------
    >>> a, b = np.array([1.0, 2.0]), np.array([3.0, -4.0])
    >>> ops.multiply(a, b).data
    array([ 3., -8.])
    """
    a, b = arrays_of(a, b)

    def backward(dy: Array):
        return lambda: unbroadcast(dy * b, a.shape), lambda: unbroadcast(dy * a, b.shape)

    return a * b, backward


@op
def divide(a: Array, b: Array):
    """Divide two arrays, a / b.

    Examples
    --------
    >>> a, b = np.array([1.0, 2.0]), np.array([3.0, -4.0])
    >>> ops.divide(a, b).data
    array([ 0.33333333, -0.5       ])
    """
    a, b = arrays_of(a, b)
    y = a / b

    def backward(dy: Array):
        return lambda: unbroadcast(dy / b, a.shape), lambda: unbroadcast(-dy * y / b, b.shape)

    return y, backward


@op
def matmul(a: Array, b: Array):
    """Matrix product of a (..., M, K) and b (..., K, N)."""
    if min(a.ndim, b.ndim) < 2 or a.shape[-1] != b.shape[-2]:
        raise ShapeError(
            f"matmul: expected shapes (..., M, K) and (..., K, N), found {a.shape} and {b.shape}"
            "; transpose one of them where its axes are the other way round"
        )

    def backward(dy: Array):
        return (
            lambda: unbroadcast(products.matmul(dy, b.swapaxes(-1, -2)), a.shape),
            lambda: unbroadcast(products.matmul(a.swapaxes(-1, -2), dy), b.shape),
        )

    return products.matmul(a, b), backward


@op
def cast(x: Array, *, dtype: Any):
    """Return x in another dtype; between floats the gradient is cast back, else it is None.

    Examples
    --------
    >>> ops.cast(np.array([1.5, 2.5]), dtype=np.float32).dtype
    dtype('float32')
    """
    x = np.asarray(x)
    y = x.astype(dtype)
    floats = x.dtype.kind == y.dtype.kind == "f"
    return y, lambda dy: (dy.astype(x.dtype) if floats else None,)
