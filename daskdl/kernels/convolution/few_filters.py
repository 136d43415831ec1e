"""Convolution with few filters: neighbouring windows are joined to one with more filters.

A product computes a whole panel of columns even for few filters. Results of neighbouring windows
are adjacent, as if they were channels of one, and the windows overlap: ten of 3x3 with 3 filters
each are one of 3x12 with 30 filters, which takes the products of 36 panels instead of 90. Pixels
outside a window get weights of zero, so NaN and infinity reach neighbours, as in Winograd's tiles.
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
#: Cost of copying results if joined windows do not fit the columns, as a share of the products.
COPIED = 0.1
#: Columns from which their number does not matter: a scene's tiles then sum in the scene's order.
WIDE = 2 * WIDEST_COLUMNS


@lru_cache(256)
def together(geometry: Geometry, filters: int, columns: int) -> int:
    """Return the best number of neighbours to join in a row of ``columns`` results."""
    if geometry.groups > 1 or geometry.dilation[1] > 1 or min(geometry.pad) < 0:
        return 1

    if columns >= WIDE:
        columns = WIDE
        # Powers of two, so that tiles of a network with strides need not begin far apart.
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
    """Return the weights (n * out, kh, more, in) and the geometry of ``n`` joined neighbours.

    If n does not divide the result's columns, padding adds a last window for the rest of them.
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
