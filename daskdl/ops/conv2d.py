"""Convolution 2-D over channels-last images."""

from __future__ import annotations

from daskdl.kernels import conv2d as kernel
from daskdl.kernels.conv2d import Geometry
from daskdl.tensor import Array, op


@op
def conv2d(  # type: ignore[no-untyped-def]
    x: Array,
    weight: Array,
    bias: Array | None,
    *,
    stride: tuple[int, int] = (1, 1),
    pad: tuple[int, int, int, int] = (0, 0, 0, 0),
):
    """Cross-correlate images with filters, as every framework calls convolution.

    Parameters
    ----------
    x : array (N, H, W, in)
    weight : array (out, kh, kw, in)
    bias : array (out,), optional
    stride : (down, across)
    pad : (above, below, left, right)
        Rows and columns of zeros.

    Returns
    -------
    array (N, rows, columns, out)
    """
    geometry = Geometry((weight.shape[1], weight.shape[2]), stride, pad)
    y = kernel.forward(x, weight, geometry)
    if bias is not None:
        y += bias

    def backward(dy: Array):  # type: ignore[no-untyped-def]
        return (
            lambda: kernel.input_gradient(dy, weight, geometry, *x.shape[1:3]),
            lambda: kernel.weight_gradient(x, dy, geometry),
            lambda: dy.sum((0, 1, 2)),
        )

    return y, backward
