"""Rules for images: pooling without data for gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from daskdl import ops
from daskdl.kernels.pooling import pooling
from daskdl.kernels.pooling.pooling import maxima_of_bytes
from daskdl.nn.inference.channels import parts_of, waiting
from daskdl.nn.inference.pending import Joined, Pending, used
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
    images = array_of(x).transpose(0, 2, 3, 1)
    if not images.flags.carray or not images.size:
        return None
    return Tensor(run.call(pooling.global_means, images)[:, :, None, None])


@rule(ops.max_pool2d)
def max_pool2d(run: Pass, x: Any, **settings: Any) -> Any:
    """Compute maxima without their places, which only gradients need."""
    shape = tuple(x.shape)
    if len(shape) != 4 or x.dtype not in FLOATS:
        return None
    parts = parts_of(x)
    if parts is not None and parts.how == "side by side" and x.axes is None:  # each by itself
        arrays = tuple(run.call(_maxima, array, **settings) for array in parts.arrays)
        return waiting(run, parts._replace(arrays=arrays), None)
    if isinstance(x, Pending) and x.gives_bytes and x.axes is None:
        return _of_bytes(run, used(x), settings)
    return Tensor(run.call(_maxima, run.contiguous(x), **settings))


def _of_bytes(run: Pass, x: Pending, settings: Any) -> Pending:
    """Return pending maxima; if bytes are wanted, they are maxima of bytes."""
    extend = extension(run)
    windows = windows_of("max_pool2d", x, **settings)

    def compute(joined: Joined) -> Array:
        into = joined.into
        if into is not None and joined._replace(into=None).bare:
            x.round(into)
            rounded = x.rounded
            if rounded is not None and rounded.scale == into:
                return run.call(maxima_of_bytes, rounded.bytes, windows)
        return extend(run.call(_maxima, run.contiguous(x), **settings), joined)

    shape = len(x), *windows.size(*x.shape[1:3]), x.shape[3]
    pooled = Pending(compute, extend, shape, np.float32)
    pooled.gives_bytes = True
    return pooled


def _maxima(x: Array, **settings: Any) -> Array:
    return pooling.maxima_alone(x, windows_of("max_pool2d", x, **settings))
