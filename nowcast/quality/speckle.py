"""Speckle: echoes of a few gates, such as planes, birds, ships and faults of the receiver."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# Gates of the smallest echo that stays; a shower of 1 km2 has eight at 30 km in rays of 1 degree
# and gates of 250 m. Py-ART's despeckling takes 10.
GATES = 8


def speckle(echo: NDArray[np.bool_], gates: int = GATES) -> NDArray[np.bool_]:
    """Return the gates of echoes of fewer than ``gates``, corners touching.

    Parameters
    ----------
    echo : (rays, gates) bool
        Rays are a full turn: the last touches the first.
    gates : int
        Of the smallest echo that stays.

    Returns
    -------
    (rays, gates) bool

    Examples
    --------
    >>> echo = np.zeros((360, 40), bool)
    >>> echo[359:, 3:7] = echo[:1, 3:7] = echo[90, 20] = True
    >>> np.argwhere(speckle(echo)).tolist()
    [[90, 20]]
    """
    from skimage.measure import label

    # Rays from the other side are enough to show a small echo across north whole.
    turns = np.arange(-gates, len(echo) + gates) % len(echo)
    labels = label(echo[turns], connectivity=2)
    small = np.bincount(labels.reshape(-1)) < gates
    small[0] = False
    return np.asarray(small[labels[gates:-gates]])
