"""Pooling of sequences and of volumes, by that of images: a window is one of each axis in turn."""

from __future__ import annotations

from typing import Any

from daskdl.errors import ShapeError
from daskdl.ops.pooling import avg_pool2d, max_pool2d
from daskdl.ops.shape import reshape
from daskdl.tensor import Array, Tensor

__all__ = ["avg_pool1d", "avg_pool3d", "max_pool1d", "max_pool3d"]


def max_pool1d(
    x: Array | Tensor,
    *,
    kernel_size: int,
    stride: int | None = None,
    pad: tuple[int, int] = (0, 0),
    ceil_mode: bool = False,
) -> Tensor:
    """Take the largest number of each window of steps: (N, T, C) -> (N, steps, C).

    Examples
    --------
    >>> x = np.ones((2, 5, 3), np.float32)
    >>> ops.max_pool1d(x, kernel_size=2).shape
    (2, 2, 3)
    """
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
    """Take the mean of each window of steps: (N, T, C) -> (N, steps, C).

    Examples
    --------
    >>> x = np.ones((2, 5, 3), np.float32)
    >>> ops.avg_pool1d(x, kernel_size=2).shape
    (2, 2, 3)
    """
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

    ``pad`` has the cells in front, behind, above, below, to the left and to the right.

    Examples
    --------
    >>> x = np.ones((1, 4, 4, 4, 2), np.float32)
    >>> ops.max_pool3d(x, kernel_size=(2, 2, 2)).shape
    (1, 2, 2, 2, 2)
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
    """Take the mean of each window, (N, D, H, W, C) -> (N, depths, rows, columns, C).

    Examples
    --------
    >>> x = np.ones((1, 4, 4, 4, 2), np.float32)
    >>> ops.avg_pool3d(x, kernel_size=(2, 2, 2)).shape
    (1, 2, 2, 2, 2)
    """
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
