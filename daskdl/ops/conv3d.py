"""Convolution 3-D over channels-last volumes, by that of images whose channels hold the depths."""

from __future__ import annotations

from typing import Any

from daskdl.errors import ShapeError
from daskdl.ops.conv2d import check_steps, conv2d
from daskdl.ops.conv_transpose import conv_transpose2d
from daskdl.ops.shape import reshape, transpose
from daskdl.ops.unfold import fold, unfold
from daskdl.tensor import Array, Tensor

__all__ = ["conv3d", "conv_transpose3d"]

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

    The depths that a kernel reaches lie side by side as channels of one convolution 2-D, whose
    products are thereby long ones; that copies the volume once for each depth of the kernel.

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

    Raises
    ------
    SettingsError
        When stride or dilation is below 1, or pad below 0.
    ShapeError
        When arguments do not fit each other.

    Examples
    --------
    >>> x = np.ones((1, 4, 4, 4, 2), np.float32)
    >>> ops.conv3d(x, np.ones((3, 2, 2, 2, 2), np.float32), None).shape
    (1, 3, 3, 3, 3)
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
    """Let each cell add its kernel to the result, ``stride`` apart: :func:`conv3d` turned round.

    Parameters
    ----------
    x : array (N, D, H, W, in)
    weight : array (in, kd, kh, kw, out / groups)
    bias : array (out,), optional
    stride, dilation : (deep, down, across)
    pad : (front, behind, above, below, left, right)
        Cells that are cut off the result.
    output_pad : (behind, below, right)
        Cells more, each fewer than the stride.
    groups : int

    Returns
    -------
    array (N, depths, rows, columns, out)

    Raises
    ------
    ShapeError
        When arguments do not fit each other.

    Examples
    --------
    >>> x, weight = np.ones((1, 2, 2, 2, 1), np.float32), np.ones((1, 2, 2, 2, 3), np.float32)
    >>> conv_transpose3d(x, weight, None, stride=(2, 2, 2)).shape
    (1, 4, 4, 4, 3)
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
