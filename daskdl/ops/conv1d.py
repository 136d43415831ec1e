"""Convolution 1-D over channels-last sequences."""

from __future__ import annotations

from daskdl.errors import ShapeError
from daskdl.kernels.convolution import conv2d as kernel
from daskdl.kernels.convolution.geometry import Geometry
from daskdl.kernels.vectors.arithmetic import add_bias, bias_gradient
from daskdl.ops.conv2d import check
from daskdl.tensor import Array, op

__all__ = ["conv1d"]


@op
def conv1d(
    x: Array,
    weight: Array,
    bias: Array | None,
    *,
    stride: int = 1,
    pad: tuple[int, int] = (0, 0),
    dilation: int = 1,
    groups: int = 1,
):
    """Cross-correlate sequences with filters: a convolution over images of one row.

    Parameters
    ----------
    x : array (N, T, in)
    weight : array (out, k, in / groups)
    bias : array (out,), optional
    stride : int
    pad : (before, behind)
        Steps of zeros. ``((k - 1) * dilation, 0)`` makes a result see no later step.
    dilation : int
        Steps from one tap of the kernel to the next.
    groups : int
        Each has its share of the input channels and of the filters.

    Returns
    -------
    array (N, steps, out)

    Raises
    ------
    SettingsError
        When stride or dilation is below 1, or pad below 0.
    ShapeError
        When an array's shape or dtype does not fit the others, or the sequence is shorter than the
        kernel's window.

    Examples
    --------
    >>> x = np.ones((2, 5, 3), np.float32)
    >>> ops.conv1d(x, np.ones((8, 3, 3), np.float32), None).shape
    (2, 3, 8)
    """
    if x.ndim != 3 or weight.ndim != 3:
        raise ShapeError(
            f"conv1d: expected x of shape (N, T, in) and weight of shape (out, k, in / groups), "
            f"found {x.shape} and {weight.shape}"
            "; add the missing axis, x[..., None] for a single channel"
        )
    images, filters = x[:, None], weight[:, None]
    geometry = Geometry((1, weight.shape[1]), (1, stride), (0, 0, *pad), (1, dilation), groups)
    check("conv1d", images, filters, bias, geometry)
    y = kernel.forward(images, filters, geometry)[:, 0]
    if bias is not None:
        add_bias(y, bias)

    def backward(dy: Array):
        rows = dy[:, None]
        return (
            lambda: kernel.input_gradient(rows, filters, geometry, 1, x.shape[1])[:, 0],
            lambda: kernel.weight_gradient(images, rows, geometry)[:, 0],
            lambda: bias_gradient(dy),
        )

    return y, backward
