"""Forecast of a method from one start: a field, and where it can, probabilities and members."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]


@dataclass(frozen=True)
class Forecast:
    """A forecast at the scored lead times.

    Parameters
    ----------
    rain : ndarray, (lead, y, x) float32
        Rain rate in mm h-1, NaN where it is not known.
    members : ndarray, (member, lead, y, x) float32, optional
        Ensemble in mm h-1.
    probability : ndarray, (lead, y, x) float32, optional
        Probability of a rain rate at or above 1 mm h-1.
    yes : dict of float to ndarray, (lead, y, x) bool, optional
        The method's own yes and no to each threshold in mm h-1, where it does not come from the
        field.
    seconds : float
        Time that it took, for all leads.
    """

    rain: Array
    members: Array | None = None
    probability: Array | None = None
    yes: dict[float, NDArray[np.bool_]] | None = None
    seconds: float = 0.0
