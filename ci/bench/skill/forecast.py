"""What a method gives from one start: a field, and where it can, probabilities and members."""

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
    probability : dict of float to ndarray, (lead, y, x) float32, optional
        Probability of a rain rate at or above each threshold in mm h-1.
    seconds : float
        Time that it took, for all leads.
    """

    rain: Array
    members: Array | None = None
    probability: dict[float, Array] | None = None
    seconds: float = 0.0
