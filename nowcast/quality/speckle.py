"""Speckle: echoes of a few gates, such as planes, birds, ships and faults of the receiver.

Connected components as in `skimage.measure.label`, but also across north, in 2/3 of its time.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.runtime.jit import jit

Mask = NDArray[np.bool_]

# Gates of the smallest echo that stays; a shower of 1 km2 has eight at 30 km in rays of 1 degree
# and gates of 250 m. Py-ART's despeckling takes 10.
GATES = 8


def speckle(echo: Mask) -> Mask:
    """Return the gates (rays, gates) in echoes of fewer than `GATES`; corners connect.

    Rays are a full turn: the last one is next to the first.

    Examples
    --------
    >>> echo = np.zeros((360, 40), bool)
    >>> echo[359:, 3:7] = echo[:1, 3:7] = echo[90, 20] = True
    >>> np.argwhere(speckle(echo)).tolist()
    [[90, 20]]
    """
    small = np.zeros(echo.shape, np.bool_)
    _mark_small(echo, GATES, np.empty(echo.size, np.int32), echo.copy(), small)
    return small


@jit
def _mark_small(
    echo: Mask, least: int, members: NDArray[np.int32], unvisited: Mask, small: Mask
) -> None:
    """Mark echoes of fewer gates than ``least``; ``unvisited`` is a copy, ``members`` is space."""
    rays, gates = echo.shape
    for first in range(echo.size):
        if not unvisited[first // gates, first % gates]:
            continue
        unvisited[first // gates, first % gates] = False
        members[0] = first
        count, at = 1, 0
        while at < count:
            ray, gate = members[at] // gates, members[at] % gates
            at += 1
            for side in (-1, 0, 1):
                row = (ray + side) % rays
                for near in range(max(gate - 1, 0), min(gate + 2, gates)):
                    if unvisited[row, near]:
                        unvisited[row, near] = False
                        members[count] = row * gates + near
                        count += 1
        if count < least:
            for member in members[:count]:
                small[member // gates, member % gates] = True
