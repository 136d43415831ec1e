"""Between rain rates and the numbers that a network reads and makes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]


@dataclass(frozen=True)
class RainScale:
    """A logarithmic scale: 0 mm h-1 is 0 and ``full`` is 1.

    value = ln(1 + rate / floor) / ln(1 + full / floor): linear below ``floor``, where radars see
    noise, logarithmic above it, as reflectivity is.

    Parameters
    ----------
    floor, full : float
        In mm h-1.

    Examples
    --------
    >>> scale = RainScale()
    >>> scale.to_rain(scale.to_network(np.array([0, 1, 50], "f4"))).round(3)
    array([ 0.,  1., 50.], dtype=float32)
    """

    floor: float = 0.1
    full: float = 50.0

    def to_network(self, rain: Array) -> Array:
        """Scale rain rates in mm h-1; NaN stays NaN, and less than no rain is none."""
        values = np.log1p(np.maximum(rain, 0) * np.float32(1 / self.floor))
        values *= np.float32(1 / np.log1p(self.full / self.floor))
        return values

    def to_rain(self, values: Array) -> Array:
        """Return rain rates in mm h-1, between 0 and four times ``full``."""
        largest = np.log1p(4 * self.full / self.floor)
        rain = np.expm1(np.clip(values * np.log1p(self.full / self.floor), 0, largest))
        return (rain * self.floor).astype(np.float32)
