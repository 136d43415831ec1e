"""The past of a cell: where its middle was and how much it rained, for its motion and its trend."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

#: Minutes that are looked back.
WINDOW = 40.0
#: Km that a middle is uncertain by, and km a minute by which cells move unlike the rain in them.
MIDDLE_ERROR, OWN_MOTION = 0.7, 0.15
#: Share that a cell's rain is uncertain by, and what trends of the logarithm are usual, a minute.
VOLUME_ERROR, OWN_TREND = 0.25, 0.02


class Past(NamedTuple):
    """A cell's last frames, oldest first."""

    ages: tuple[float, ...] = ()  #: Minutes before now.
    places: tuple[tuple[float, float], ...] = ()  #: Row and column of the middle.
    volumes: tuple[float, ...] = ()  #: m3 h-1.

    def aged(self, minutes: float) -> Past:
        """Return the past so many minutes later, without what is too old."""
        ages = [age + minutes for age in self.ages]
        kept = sum(age <= WINDOW for age in ages)
        drop = len(ages) - kept
        return Past(tuple(ages[drop:]), self.places[drop:], self.volumes[drop:])

    def with_now(self, row: float, column: float, volume: float) -> Past:
        """Return the past with the frame of now at its end."""
        return Past((*self.ages, 0.0), (*self.places, (row, column)), (*self.volumes, volume))

    def motion(self, field: NDArray[np.float64], cell_km: float) -> NDArray[np.float64]:
        """Return the motion in cells a minute, rows and columns, (2,) float64.

        The straight line through the middles, held to the ``field``'s motion in the cell by as much
        as the middles are uncertain: two frames tell little, five a good deal.
        """
        hold = (MIDDLE_ERROR / OWN_MOTION) ** 2
        places = np.array(self.places)
        slope, weight = _slope(self.ages, places)
        return np.asarray((weight * slope + hold * field) / (weight + hold))

    def trend(self) -> float | None:
        """Return the change of rain in an hour as a share of now's, None without a past."""
        if len(self.ages) < 2 or min(self.volumes) <= 0:
            return None
        hold = (VOLUME_ERROR / OWN_TREND) ** 2
        slope, weight = _slope(self.ages, np.log(self.volumes)[:, np.newaxis])
        return float(np.expm1(60 * slope[0] * weight / (weight + hold)))


def _slope(
    ages: tuple[float, ...], values: NDArray[np.float64]
) -> tuple[NDArray[np.float64], float]:
    """Return the slopes a minute of values (frame, k) by least squares, and their weight."""
    time = np.mean(ages) - np.array(ages)
    weight = float(time @ time)
    return time @ values / max(weight, 1e-9), weight
