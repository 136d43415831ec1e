"""Rules for images: pooling without data for gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from daskdl import ops
from daskdl.kernels.pooling import pooling
from daskdl.kernels.pooling.pooling import Windows, maxima_alone
from daskdl.nn.inference.channels import FIRST, parts_of, waiting
from daskdl.nn.inference.pending import Joined, Pending, Rounded, kept, used, used_half
from daskdl.nn.inference.rules import extension
from daskdl.nn.inference.running import Pass, array_of, rule
from daskdl.ops.arguments import FLOATS
from daskdl.ops.pool.pooling import windows_of
from daskdl.tensor import Array, Tensor


@rule(ops.mean)
def mean(run: Pass, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
    """Compute means of whole images, (N, C, H, W) with channels last in memory."""
    if not keepdims or axis not in ((2, 3), (-2, -1)) or x.ndim != 4 or x.dtype not in FLOATS:
        return None
    if isinstance(x, Pending) and x.axes == FIRST and x.rounded is not None:
        return Tensor(run.call(pooling.global_means, *x.rounded)[:, :, None, None])
    images = array_of(x).transpose(0, 2, 3, 1)
    if not images.flags.carray or not images.size:
        return None
    return Tensor(run.call(pooling.global_means, images)[:, :, None, None])


@rule(ops.avg_pool2d)
def avg_pool2d(run: Pass, x: Any, *, count_include_pad: bool = True, **settings: Any) -> Any:
    """Compute means of bytes."""
    if not isinstance(x, Pending) or x.axes is not None or x.ndim != 4 or x.rounded is None:
        return None
    windows = windows_of("avg_pool2d", x, **settings)
    numbers, scale = x.rounded
    return Tensor(run.call(pooling.means, numbers, windows, count_include_pad, scale))


@rule(ops.max_pool2d)
def max_pool2d(run: Pass, x: Any, **settings: Any) -> Any:
    """Compute maxima without their places, which only gradients need."""
    shape = tuple(x.shape)
    if len(shape) != 4 or x.dtype not in FLOATS:
        return None
    parts = parts_of(x)
    windows = windows_of("max_pool2d", x, **settings)
    if parts is not None and parts.how == "side by side" and x.axes is None:  # each by itself
        pooled = tuple(_maxima(run, part, windows) for part in parts.arrays)
        return waiting(run, parts._replace(arrays=pooled), None)
    if isinstance(x, Pending) and (x.gives_bytes or _in_order(x)) and x.axes is None:
        return _pending_maxima(run, x, windows)
    return Tensor(run.call(maxima_alone, run.contiguous(x), windows))


def _in_order(x: Pending) -> bool:
    """Return whether x gives bfloat16 numbers in the order of their bits: +0 to infinity, NaN."""
    return x.gives_half and x.joined.low >= 0 and x.joined.residual is None  # that may be -0


def _pending_maxima(run: Pass, x: Pending, windows: Windows) -> Pending:
    """Return maxima; if bytes or bfloat16 numbers are wanted, they are maxima of such."""
    extend, half = extension(run), _in_order(x)
    used_half(x) if half else used(x)
    if x.rounded is not None:
        bytes_of_y = run.call(maxima_alone, x.rounded.bytes, windows)
        return kept(x.rounded._replace(bytes=bytes_of_y), extend, None)

    def compute(joined: Joined) -> Array:
        into = joined.into
        if joined.half and joined.bare and (numbers := x.half) is not None:
            return run.call(maxima_alone, numbers, windows)
        if into is not None and joined._replace(into=None).bare:
            x.round(into)
        return extend(_maxima(run, x.numbers, windows), joined)

    shape = len(x), *windows.size(*x.shape[1:3]), x.shape[3]
    pooled = Pending(compute, extend, shape, np.float32)
    pooled.gives_bytes, pooled.gives_half = x.gives_bytes, half
    return pooled


def _maxima(run: Pass, x: Array | Rounded, windows: Windows) -> Array | Rounded:
    """Return the largest numbers of windows, as bytes if x has bytes."""
    if isinstance(x, Rounded):
        return x._replace(bytes=run.call(maxima_alone, x.bytes, windows))
    y: Array = run.call(maxima_alone, x, windows)
    return y
