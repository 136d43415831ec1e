"""Hard negatives: of the priors that are to find nothing, those that are most wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def hard_negatives(losses: Array, positive: NDArray[np.bool_], ratio: float) -> NDArray[np.bool_]:
    """Return a mask of the negatives of each image with the largest losses.

    Parameters
    ----------
    losses : array (N, P)
        Of classes.
    positive : bool (N, P)
    ratio : float
        How many for each positive; an image without a positive has as many as one with one.

    Returns
    -------
    bool (N, P)
        Of equal losses at the border the first are taken.
    """
    chosen = np.zeros(positive.shape, bool)
    for of_image, values, taken in zip(positive, losses, chosen, strict=True):
        count = int(ratio * max(int(of_image.sum()), 1))
        negatives = np.flatnonzero(~of_image)
        if count >= len(negatives):
            taken[negatives] = True
        elif count:
            own = values[negatives]
            border = np.partition(own, len(own) - count)[len(own) - count]
            above = np.flatnonzero(own > border)
            at = np.flatnonzero(own == border)[: count - len(above)]
            taken[negatives[above]] = taken[negatives[at]] = True
    return chosen
