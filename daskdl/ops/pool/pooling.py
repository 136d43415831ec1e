"""Pooling of channels-last images: maxima and means, over windows and over whole images."""

from __future__ import annotations

from typing import Any

import numpy as np

from daskdl.errors import SettingsError, ShapeError
from daskdl.kernels.pooling import pooling as kernel
from daskdl.kernels.pooling.pooling import Windows
from daskdl.ops.arguments import check_floats
from daskdl.tensor import Array, op

__all__ = ["avg_pool2d", "global_avg_pool2d", "global_max_pool2d", "max_pool2d"]


@op
def max_pool2d(
    x: Array,
    *,
    kernel_size: tuple[int, int],
    stride: tuple[int, int] | None = None,
    pad: tuple[int, int, int, int] = (0, 0, 0, 0),
    ceil_mode: bool = False,
):
    """Take the largest number of each window; its gradient goes to the first of equal ones.

    Parameters
    ----------
    x : array (N, H, W, C), float32 or float64
    kernel_size : (rows, columns)
    stride : (down, across), optional
        By default the kernel's size.
    pad : (above, below, left, right)
        Cells that maxima ignore; no window may lie only in them.
    ceil_mode : bool
        Whether a last window may reach beyond image and padding, as in PyTorch.

    Returns
    -------
    array (N, rows, columns, C)
        NaN where a window has a NaN.
    """
    windows = windows_of("max_pool2d", x, kernel_size, stride, pad, ceil_mode)
    y, places = kernel.maxima(x, windows)
    height, width = x.shape[1:3]
    return y, lambda dy: (kernel.maxima_gradient(dy, places, windows, height, width),)


@op
def avg_pool2d(
    x: Array,
    *,
    kernel_size: tuple[int, int],
    stride: tuple[int, int] | None = None,
    pad: tuple[int, int, int, int] = (0, 0, 0, 0),
    ceil_mode: bool = False,
    count_include_pad: bool = True,
):
    """Take the mean of each window.

    Parameters
    ----------
    x, kernel_size, stride, ceil_mode
        As in :func:`max_pool2d`.
    pad : (above, below, left, right)
        Cells of zeros.
    count_include_pad : bool
        Whether cells of the padding count as cells of a window; those beyond it never do.

    Returns
    -------
    array (N, rows, columns, C)
    """
    windows = windows_of("avg_pool2d", x, kernel_size, stride, pad, ceil_mode)
    y = kernel.means(x, windows, count_include_pad)
    return y, lambda dy: (kernel.means_gradient(dy, windows, count_include_pad, x),)


@op
def global_max_pool2d(x: Array):
    """Take the largest number of each image and channel: (N, H, W, C) -> (N, C)."""
    n, height, width, channels = _image("global_max_pool2d", x)
    windows = Windows((height, width), (1, 1))
    y, places = kernel.maxima(x, windows)

    def backward(dy: Array):
        return (kernel.maxima_gradient(dy.reshape(y.shape), places, windows, height, width),)

    return y.reshape(n, channels), backward


@op
def global_avg_pool2d(x: Array):
    """Take the mean of each image and channel: (N, H, W, C) -> (N, C)."""
    _, height, width, _ = _image("global_avg_pool2d", x)

    def backward(dy: Array):
        dx = np.empty(x.shape, x.dtype)
        dx[:] = (dy / x.dtype.type(height * width))[:, None, None]
        return (dx,)

    return kernel.global_means(x), backward


def _image(operation: str, x: Array) -> tuple[int, int, int, int]:
    check_floats(operation, x, axes=4)
    n, height, width, channels = x.shape
    if not height or not width:
        raise ShapeError(f"{operation}: x: expected images of 1x1 or more, found shape {x.shape}")
    return n, height, width, channels


def windows_of(
    operation: str,
    x: Any,
    kernel_size: tuple[int, int],
    stride: tuple[int, int] | None = None,
    pad: tuple[int, int, int, int] = (0, 0, 0, 0),
    ceil_mode: bool = False,
) -> Windows:
    """Check an operation's settings and return its windows."""
    _, height, width, _ = _image(operation, x)
    stride = kernel_size if stride is None else stride
    for name, values in (("kernel_size", kernel_size), ("stride", stride)):
        if min(values) < 1:
            raise SettingsError(f"{operation}: {name}: expected at least 1, found {values}")
    (top, bottom, left, right), (kh, kw) = pad, kernel_size
    if min(pad) < 0 or max(top, bottom) >= kh or max(left, right) >= kw:
        raise SettingsError(
            f"{operation}: pad: expected 0 or more and less than kernel_size {kernel_size}, found "
            f"{pad}; pad less, or take a larger window"
        )
    down, across = stride
    windows = Windows((kh, kw), (down, across), (top, bottom, left, right), ceil_mode)
    if min(windows.size(height, width)) < 1:
        raise ShapeError(
            f"{operation}: x: expected images that hold a window {kernel_size} with padding {pad}, "
            f"found shape {x.shape}"
            "; pad more, or take a smaller window"
        )
    return windows
