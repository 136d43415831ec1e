"""Geometry: the places of a convolution's windows on an image."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]


class Geometry(NamedTuple):
    """Places of the windows of a convolution; pairs are (rows, columns)."""

    kernel: tuple[int, int]
    stride: tuple[int, int] = (1, 1)
    #: Zeros (above, below, left, right).
    pad: tuple[int, int, int, int] = (0, 0, 0, 0)
    dilation: tuple[int, int] = (1, 1)
    #: Number of independent groups of input channels and filters.
    groups: int = 1

    @property
    def reach(self) -> tuple[int, int]:
        """The (rows, columns) that a window spans."""
        return (
            (self.kernel[0] - 1) * self.dilation[0] + 1,
            (self.kernel[1] - 1) * self.dilation[1] + 1,
        )

    def size(self, height: int, width: int) -> tuple[int, int]:
        """Return the (rows, columns) of the result on an image of this size."""
        (top, bottom, left, right), (rows, columns) = self.pad, self.reach
        return (
            (height + top + bottom - rows) // self.stride[0] + 1,
            (width + left + right - columns) // self.stride[1] + 1,
        )

    @property
    def pointwise(self) -> bool:
        """Whether the result is one matrix product over the channels."""
        return self.kernel == (1, 1) and self.stride == (1, 1) and not any(self.pad)

    @property
    def adjoint(self) -> Geometry:
        """The geometry of the gradient to the input, as windows on the gradient to the result.

        The convolution has stride 1; the adjoint's taps are its taps in reverse order.
        """
        (down, across), (top, bottom, left, right) = self.reach, self.pad
        pad = down - 1 - top, down - 1 - bottom, across - 1 - left, across - 1 - right
        return self._replace(pad=pad)

    def by_winograd(self, channels: int) -> bool:
        """Whether Winograd serves; with few channels its transforms cost more than they save."""
        return (
            self.kernel in ((3, 3), (5, 5))
            and self.stride == self.dilation == (1, 1)
            and self.groups == 1
            and channels >= 8
        )

    def offsets(self) -> Indices:
        """Return the place of each tap, (taps, 2): rows and columns from the window's place."""
        return _offsets(self)

    def phases(self, height: int, width: int) -> list[tuple[Indices, Indices, tuple[int, ...]]]:
        """Return the sums over windows that make up an image's gradient, by place between strides.

        Each sum has the indices of the taps that reach the places of its grid; the offsets
        (taps, 2) of their windows; and the grid: first row and column, steps between rows and
        columns, and the numbers of both. No number of the image is in two grids.
        """
        return _phases(self, height, width)


# Cached, since these take longer than a small convolution's products. Do not write to the results.


@lru_cache(256)
def _offsets(geometry: Geometry) -> Indices:
    taps = np.indices(geometry.kernel).reshape(2, -1).T
    # C-contiguous like the offsets of phases: kernels are compiled for one layout.
    return np.ascontiguousarray(taps * geometry.dilation - (geometry.pad[0], geometry.pad[2]))


@lru_cache(256)
def _phases(
    geometry: Geometry, height: int, width: int
) -> list[tuple[Indices, Indices, tuple[int, ...]]]:
    offsets, strides = geometry.offsets(), geometry.stride
    phases: list[tuple[Indices, Indices, tuple[int, ...]]] = []
    for row in range(min(strides[0], height)):
        for column in range(min(strides[1], width)):
            # The tap of window t sees row = t * stride + its offset.
            distance = (row, column) - offsets
            taps = np.flatnonzero((distance % strides == 0).all(1))
            rows, columns = -(-(height - row) // strides[0]), -(-(width - column) // strides[1])
            grid = row, column, *strides, rows, columns
            phases.append((taps, distance[taps] // strides, grid))
    return phases
