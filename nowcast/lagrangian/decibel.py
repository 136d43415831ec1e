"""Rain rates in decibels, where rain is nearly Gaussian and its scales multiply."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

#: Rain rate in mm h-1 below which a pixel is dry.
DRY_BELOW = 0.1
#: Decibels (10 log10 of mm h-1) of a dry pixel: a step of 5 dB to the lightest rain.
DRY_DECIBEL = -15.0
#: Rain rate in mm h-1 above which it is hail, or a fault, and says no more about what comes.
MOST = 200.0


def to_decibel(rain: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return 10 log10 of rain rates in mm h-1; `DRY_DECIBEL` where dry, NaN where missing."""
    floor = np.float32(DRY_BELOW)
    decibel = 10 * np.log10(np.clip(rain, floor, np.float32(MOST)))
    return np.where(rain < floor, np.float32(DRY_DECIBEL), decibel)
