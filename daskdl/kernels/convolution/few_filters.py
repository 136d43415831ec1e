"""Convolution with few filters: neighbouring windows are made one of more filters.

A product computes a whole panel of columns however few filters there are. Results of neighbouring
windows lie together, as if they were channels of one, and what such windows see overlaps: ten of
3x3 with 3 filters each are one of 3x12 with 30 filters, which takes 36 panels' products and not 90.
Where a window does not see what its neighbour sees its weights are zeros; so what is not finite
reaches neighbours, as it does in Winograd's tiles.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.convolution.geometry import Geometry
from daskdl.kernels.products.microkernel import WIDEST_COLUMNS

Array = NDArray[np.floating]

#: Largest share of the separate windows' products for which joining them pays.
LEFT = 0.8
#: Cost of copying results out, where windows do not come out even, as a share of the products.
COPIED = 0.1
#: Columns of a result from which on their number has no say: tiles of a scene add up as the whole.
WIDE = 2 * WIDEST_COLUMNS


@lru_cache(256)
def together(geometry: Geometry, filters: int, columns: int) -> int:
    """Return how many neighbours in a row of so many results are best computed as one."""
    if geometry.groups > 1 or geometry.dilation[1] > 1 or min(geometry.pad) < 0:
        return 1

    if columns >= WIDE:
        columns = WIDE
        # Powers of two, so that tiles of a network with strides need not start far apart.
        numbers = [2**i for i in range(WIDEST_COLUMNS.bit_length())]
    else:
        numbers = list(range(1, min(WIDEST_COLUMNS, columns) + 1))

    def work(n: int) -> float:
        panels, windows = -(-n * filters // WIDEST_COLUMNS), -(-columns // n)
        copied = COPIED if columns % n else 0
        return panels * windows * _width(geometry, n) * (1 + copied)

    best = min(numbers, key=work, default=1)
    return best if work(best) < LEFT * work(1) else 1


def joined(weight: Array, geometry: Geometry, columns: int, n: int) -> tuple[Array, Geometry]:
    """Return the weights (n * out, kh, more, in) and the geometry of ``n`` neighbours as one.

    Where n does not divide the result's columns there will be a last window for what is left of
    them.
    """
    filters, rows, width, channels = weight.shape
    wide = np.zeros((n, filters, rows, _width(geometry, n), channels), weight.dtype)
    for i, neighbour in enumerate(wide):
        first = i * geometry.stride[1]
        neighbour[:, :, first : first + width] = weight
    down, across = geometry.stride
    more = -columns % n * across
    return wide.reshape(n * filters, *wide.shape[2:]), geometry._replace(
        kernel=(rows, wide.shape[3]),
        stride=(down, n * across),
        pad=(*geometry.pad[:3], geometry.pad[3] + more),
    )


def _width(geometry: Geometry, n: int) -> int:
    return geometry.kernel[1] + (n - 1) * geometry.stride[1]
