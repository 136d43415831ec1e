"""Transposed convolution: the gradient of a convolution to its input, as an operation."""

from __future__ import annotations

from daskdl.errors import ShapeError
from daskdl.kernels.convolution import conv2d as kernel
from daskdl.kernels.convolution.geometry import Geometry
from daskdl.kernels.vectors.arithmetic import add_bias, bias_gradient
from daskdl.ops.conv.conv import check_dtypes, check_steps
from daskdl.tensor import Array, op

__all__ = ["conv_transpose2d"]


@op
def conv_transpose2d(
    x: Array,
    weight: Array,
    bias: Array | None,
    *,
    stride: tuple[int, int] = (1, 1),
    pad: tuple[int, int, int, int] = (0, 0, 0, 0),
    output_pad: tuple[int, int] = (0, 0),
    dilation: tuple[int, int] = (1, 1),
    groups: int = 1,
):
    """Let each pixel add its kernel to the result, ``stride`` apart.

    This is the gradient of :func:`~daskdl.ops.conv.conv.conv2d` with equal weights and settings to
    its input, so it restores the input's size.

    Parameters
    ----------
    x : array (N, H, W, in)
    weight : array (in, kh, kw, out / groups)
        Weights of that convolution, from ``out`` to ``in`` channels.
    bias : array (out,), optional
    stride : (down, across)
    pad : (above, below, left, right)
        Rows and columns that are cut off the result.
    output_pad : (below, right)
        Additional rows and columns, each fewer than the stride, for sizes that the stride does not
        divide.
    dilation : (down, across)
    groups : int

    Returns
    -------
    array (N, rows, columns, out)
        ``rows = (H - 1) * stride - above - below + (kh - 1) * dilation + 1 + output_pad``.
    """
    name = "conv_transpose2d"
    check_steps(name, stride, dilation, pad)
    if x.ndim != 4 or weight.ndim != 4 or x.shape[3] != len(weight):
        raise ShapeError(
            f"{name}: expected x of shape (N, H, W, in) and weight of shape (in, kh, kw, out / "
            f"groups), found {x.shape} and {weight.shape}"
        )
    check_dtypes(name, x, weight)
    if groups < 1 or len(weight) % groups:
        raise ShapeError(
            f"{name}: expected groups that divide the {len(weight)} channels of x, found {groups}"
            "; take a divisor"
        )
    filters = weight.shape[3] * groups
    if bias is not None and bias.shape != (filters,):
        raise ShapeError(f"{name}: expected bias of shape ({filters},), found {bias.shape}")
    if not all(0 <= more < step for more, step in zip(output_pad, stride, strict=True)):
        raise ShapeError(
            f"{name}: expected output_pad from 0 to less than stride {stride}, found {output_pad}"
            "; take a smaller one, or a larger stride"
        )
    geometry = Geometry((weight.shape[1], weight.shape[2]), stride, pad, dilation, groups)
    size = tuple(
        (length - 1) * step - before - behind + reach + more
        for length, step, before, behind, reach, more in zip(
            x.shape[1:3], stride, pad[::2], pad[1::2], geometry.reach, output_pad, strict=True
        )
    )
    if min(size) < 1:
        raise ShapeError(
            f"{name}: pad {pad} leaves nothing of the result, found size {size}; pad less"
        )
    y = kernel.input_gradient(x, weight, geometry, *size)
    if bias is not None:
        add_bias(y, bias)

    def backward(dy: Array):
        return (
            lambda: kernel.forward(dy, weight, geometry),
            lambda: kernel.weight_gradient(dy, x, geometry),
            lambda: bias_gradient(dy),
        )

    return y, backward
