"""Speckle: echoes of a few gates, such as planes, birds, ships and faults of the receiver."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

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
    # Rays around north once more on both sides, as far as a small echo reaches.
    turn = np.pad(echo, ((GATES, GATES), (0, 0)), mode="wrap")
    labels = ndimage.label(turn, np.ones((3, 3)))[0]
    small = np.bincount(labels.ravel()) < GATES
    return np.asarray(echo & small[labels[GATES:-GATES]])
