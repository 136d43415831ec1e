"""Convolutions and pooling over three axes."""

from __future__ import annotations

from typing import Any

from daskdl.errors import ShapeError
from daskdl.ops.conv.conv import check_steps, conv2d
from daskdl.ops.conv.conv_transpose import conv_transpose2d
from daskdl.ops.conv.unfold import fold, unfold
from daskdl.ops.pool.pooling import avg_pool2d, max_pool2d
from daskdl.ops.shape.shape import reshape, transpose
from daskdl.tensor import Array, Tensor

__all__ = [
    "avg_pool1d",
    "avg_pool3d",
    "conv3d",
    "conv_transpose3d",
    "max_pool1d",
    "max_pool3d",
]


Triple = tuple[int, int, int]


def conv3d(
    x: Array | Tensor,
    weight: Array | Tensor,
    bias: Array | Tensor | None,
    *,
    stride: Triple = (1, 1, 1),
    pad: tuple[int, int, int, int, int, int] = (0, 0, 0, 0, 0, 0),
    dilation: Triple = (1, 1, 1),
    groups: int = 1,
) -> Tensor:
    """Cross-correlate volumes with filters.

    The depths of a kernel become channels of one 2-D convolution, so that its products are long.
    This copies the volume once for each depth of the kernel.

    Parameters
    ----------
    x : array (N, D, H, W, in)
    weight : array (out, kd, kh, kw, in / groups)
    bias : array (out,), optional
    stride, dilation : (deep, down, across)
    pad : (front, behind, above, below, left, right)
        Cells of zeros.
    groups : int

    Returns
    -------
    array (N, depths, rows, columns, out)
    """
    if len(x.shape) != 5 or len(weight.shape) != 5 or weight.shape[4] * groups != x.shape[4]:
        raise ShapeError(
            f"conv3d: expected x (N, D, H, W, in) and weight (out, kd, kh, kw, in / {groups}), "
            f"found {tuple(x.shape)} and {tuple(weight.shape)}"
            "; channels are the last axis of x and of the weight"
        )
    check_steps("conv3d", stride, dilation, pad)
    n, _, height, width, channels = x.shape
    out, kd, kh, kw, share = weight.shape
    windows = unfold(x, axis=1, size=kd, stride=stride[0], pad=pad[:2], dilation=dilation[0])
    depths = windows.shape[1]
    windows = reshape(windows, shape=(n, depths, kd, height, width, groups, share))
    windows = transpose(windows, axes=(0, 1, 3, 4, 5, 2, 6))
    y = conv2d(
        reshape(windows, shape=(n * depths, height, width, kd * channels)),
        reshape(transpose(weight, axes=(0, 2, 3, 1, 4)), shape=(out, kh, kw, kd * share)),
        bias,
        stride=stride[1:],
        pad=pad[2:],
        dilation=dilation[1:],
        groups=groups,
    )
    return reshape(y, shape=(n, depths, *y.shape[1:]))


def conv_transpose3d(
    x: Array | Tensor,
    weight: Array | Tensor,
    bias: Array | Tensor | None,
    *,
    stride: Triple = (1, 1, 1),
    pad: tuple[int, int, int, int, int, int] = (0, 0, 0, 0, 0, 0),
    output_pad: Triple = (0, 0, 0),
    dilation: Triple = (1, 1, 1),
    groups: int = 1,
) -> Tensor:
    """Let each cell add its kernel to the result, ``stride`` apart: the adjoint of :func:`conv3d`.

    Parameters
    ----------
    x : array (N, D, H, W, in)
    weight : array (in, kd, kh, kw, out / groups)
    bias : array (out,), optional
    stride, dilation : (deep, down, across)
    pad : (front, behind, above, below, left, right)
        Cells that are cut off the result.
    output_pad : (behind, below, right)
        Additional cells, each fewer than the stride.
    groups : int

    Returns
    -------
    array (N, depths, rows, columns, out)
    """
    if len(x.shape) != 5 or len(weight.shape) != 5 or len(weight) != x.shape[4]:
        raise ShapeError(
            f"conv_transpose3d: expected x (N, D, H, W, in) and weight (in, kd, kh, kw, out / "
            f"groups), found {tuple(x.shape)} and {tuple(weight.shape)}"
        )
    check_steps("conv_transpose3d", stride, dilation, pad)
    n, depth, height, width, channels = x.shape
    _, kd, kh, kw, share = weight.shape
    if bias is not None and tuple(bias.shape) != (groups * share,):
        raise ShapeError(
            f"conv_transpose3d: expected bias of shape ({groups * share},), found "
            f"{tuple(bias.shape)}"
        )
    length = (depth - 1) * stride[0] - sum(pad[:2]) + (kd - 1) * dilation[0] + 1 + output_pad[0]
    if length < 1:
        raise ShapeError(f"conv_transpose3d: pad {pad} leaves nothing of the result; pad less")
    filters = transpose(weight, axes=(0, 2, 3, 1, 4))
    y = conv_transpose2d(
        reshape(x, shape=(n * depth, height, width, channels)),
        reshape(filters, shape=(channels, kh, kw, kd * share)),
        None,
        stride=stride[1:],
        pad=pad[2:],
        output_pad=output_pad[1:],
        dilation=dilation[1:],
        groups=groups,
    )
    rows, columns = y.shape[1:3]
    y = reshape(y, shape=(n, depth, rows, columns, groups, kd, share))
    y = reshape(
        transpose(y, axes=(0, 1, 5, 2, 3, 4, 6)),
        shape=(n, depth, kd, rows, columns, groups * share),
    )
    result: Any = fold(
        y, axis=1, length=length, stride=stride[0], pad=pad[:2], dilation=dilation[0]
    )
    return result if bias is None else result + bias


def max_pool1d(
    x: Array | Tensor,
    *,
    kernel_size: int,
    stride: int | None = None,
    pad: tuple[int, int] = (0, 0),
    ceil_mode: bool = False,
) -> Tensor:
    """Take the largest number of each window of steps: (N, T, C) -> (N, steps, C)."""
    return _sequences(max_pool2d, x, kernel_size, stride, pad, ceil_mode=ceil_mode)


def avg_pool1d(
    x: Array | Tensor,
    *,
    kernel_size: int,
    stride: int | None = None,
    pad: tuple[int, int] = (0, 0),
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """Take the mean of each window of steps: (N, T, C) -> (N, steps, C)."""
    return _sequences(
        avg_pool2d, x, kernel_size, stride, pad,
        ceil_mode=ceil_mode, count_include_pad=count_include_pad,
    )  # fmt: skip


def max_pool3d(
    x: Array | Tensor,
    *,
    kernel_size: tuple[int, int, int],
    stride: tuple[int, int, int] | None = None,
    pad: tuple[int, int, int, int, int, int] = (0, 0, 0, 0, 0, 0),
    ceil_mode: bool = False,
) -> Tensor:
    """Take the largest number of each window, (N, D, H, W, C) -> (N, depths, rows, columns, C).

    ``pad`` are the cells in front, behind, above, below, to the left and to the right.
    """
    return _volumes(max_pool2d, x, kernel_size, stride, pad, ceil_mode=ceil_mode)


def avg_pool3d(
    x: Array | Tensor,
    *,
    kernel_size: tuple[int, int, int],
    stride: tuple[int, int, int] | None = None,
    pad: tuple[int, int, int, int, int, int] = (0, 0, 0, 0, 0, 0),
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """Take the mean of each window, (N, D, H, W, C) -> (N, depths, rows, columns, C)."""
    return _volumes(
        avg_pool2d, x, kernel_size, stride, pad,
        ceil_mode=ceil_mode, count_include_pad=count_include_pad,
    )  # fmt: skip


def _sequences(
    pool: Any, x: Any, size: int, stride: int | None, pad: tuple[int, int], **settings: Any
) -> Tensor:
    if len(x.shape) != 3:
        raise ShapeError(
            f"pooling: expected x of shape (N, T, C), found {tuple(x.shape)}"
            "; add the missing axis, x[..., None] for a single channel"
        )
    n, steps, channels = x.shape
    y = pool(
        reshape(x, shape=(n, steps, 1, channels)),
        kernel_size=(size, 1),
        stride=(size if stride is None else stride, 1),
        pad=(*pad, 0, 0),
        **settings,
    )
    return reshape(y, shape=(n, y.shape[1], channels))


def _volumes(
    pool: Any,
    x: Any,
    size: tuple[int, int, int],
    stride: tuple[int, int, int] | None,
    pad: tuple[int, ...],
    **settings: Any,
) -> Tensor:
    if len(x.shape) != 5:
        raise ShapeError(
            f"pooling: expected x of shape (N, D, H, W, C), found {tuple(x.shape)}"
            "; add the missing axis, x[..., None] for a single channel"
        )
    n, depth, height, width, channels = x.shape
    deep, *flat = size if stride is None else stride
    y = pool(
        reshape(x, shape=(n * depth, height, width, channels)),
        kernel_size=size[1:],
        stride=tuple(flat),
        pad=pad[2:],
        **settings,
    )
    rows, columns = y.shape[1:3]
    y = pool(
        reshape(y, shape=(n, depth, rows * columns, channels)),
        kernel_size=(size[0], 1),
        stride=(deep, 1),
        pad=(*pad[:2], 0, 0),
        **settings,
    )
    return reshape(y, shape=(n, y.shape[1], rows, columns, channels))
