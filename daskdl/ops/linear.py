"""The affine map over the last axis."""

from __future__ import annotations

from daskdl.errors import ShapeError
from daskdl.kernels.products.precise import product_of
from daskdl.kernels.vectors.arithmetic import add_bias, bias_gradient
from daskdl.tensor import Array, op

__all__ = ["linear"]


def rows(x: Array) -> Array:
    """View (..., C) as (rows, C)."""
    return x if x.ndim == 2 else x.reshape(-1, x.shape[-1])


@op
def linear(x: Array, weight: Array, bias: Array | None):
    """Compute x @ weight.T + bias.  x (..., in), weight (out, in), bias (out,) -> (..., out).

    Numbers of ``x`` are taken in the weight's dtype, such as float64 of a table or levels of
    pixels: a product of two kinds of numbers takes several times as long, and so does all that
    follows in float64.

    Raises
    ------
    ShapeError
        When ``x`` holds something else than numbers.

    Examples
    --------
    >>> ops.linear(np.ones((2, 3)), np.ones((4, 3)), None).data
    array([[3., 3., 3., 3.],
           [3., 3., 3., 3.]])
    """
    if x.dtype.kind not in "fiub":
        raise ShapeError(
            f"linear: expected x of numbers, found {x.dtype} {x.shape}; x.astype(np.float32) makes "
            "numbers of objects"
        )
    x = x.astype(weight.dtype, copy=False)
    matmul = product_of(weight)
    y = matmul(rows(x), weight.T)
    if bias is not None:
        add_bias(y, bias)
    if x.ndim != 2:
        y = y.reshape(*x.shape[:-1], len(weight))

    def backward(dy: Array):
        return (
            lambda: matmul(rows(dy), weight).reshape(x.shape),
            lambda: matmul(rows(dy).T, rows(x)),
            lambda: bias_gradient(dy),
        )

    return y, backward
