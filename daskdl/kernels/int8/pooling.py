"""Maxima of windows of bytes: of what bytes stand for, since that grows with them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.pooling.pooling import Windows
from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.memory import empty
from daskdl.kernels.runtime.team import over_range
from daskdl.kernels.runtime.threads import least_of

Bytes = NDArray[np.uint8]


def maxima(x: Bytes, windows: Windows) -> Bytes:
    """Return the largest byte of each window of x (N, H, W, C); of one beside the image 0."""
    y = empty((len(x), *windows.size(*x.shape[1:3]), x.shape[3]), np.uint8)
    lines = len(y) * y.shape[1]
    least = least_of(windows.kernel[0] * windows.kernel[1] * y.shape[2] * y.shape[3])
    over_range(_maxima, lines, least, x, y, windows.bounds)
    return y


@jit
def _maxima(x, y, bounds, which, start, stop):
    """Do the rows ``start`` to ``stop`` of all rows of all images of y."""
    kh, kw, down, across, top, left = bounds
    for row in range(start, stop):
        n, i = divmod(row, y.shape[1])
        h = i * down - top
        for j in range(y.shape[2]):
            w, target = j * across - left, y[n, i, j]
            target[:] = 0
            for p in range(max(0, h), min(x.shape[1], h + kh)):
                for q in range(max(0, w), min(x.shape[2], w + kw)):
                    source = x[n, p, q]
                    for c in range(target.size):
                        target[c] = max(target[c], source[c])
