"""Coverage: the fractions of radars' range that are missing, dry and wet."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# Rain rate in mm h-1 from which on a cell is wet.
WET = 0.1


@dataclass(frozen=True)
class Coverage:
    """Numbers of cells, over all times; they add up.

    Parameters
    ----------
    missing, dry, wet : int
        Cells without a value, below 0.1 mm h-1, and from there on.

    Examples
    --------
    >>> Coverage.of(np.array([[np.nan, 0.0], [0.0, 5.0]], np.float32)).shares()
    (25.0, 50.0, 25.0)
    """

    missing: int = 0
    dry: int = 0
    wet: int = 0

    @classmethod
    def of(cls, rain: NDArray[np.float32], reached: NDArray[np.bool_] | None = None) -> Coverage:
        """Return the numbers for a map in mm h-1, of the cells that are ``reached`` (all)."""
        cells = rain if reached is None else rain[reached]
        wet = int(np.count_nonzero(cells >= WET))
        missing = int(np.count_nonzero(np.isnan(cells)))
        return cls(missing, cells.size - missing - wet, wet)

    def __add__(self, other: Coverage) -> Coverage:
        return Coverage(self.missing + other.missing, self.dry + other.dry, self.wet + other.wet)

    def shares(self) -> tuple[float, float, float]:
        """Return how many of a hundred cells are missing, dry and wet; zeros of no cells."""
        total = max(self.missing + self.dry + self.wet, 1)
        return 100.0 * self.missing / total, 100.0 * self.dry / total, 100.0 * self.wet / total

    def __str__(self) -> str:
        missing, dry, wet = self.shares()
        return f"{missing:.1f} % missing, {dry:.1f} % dry, {wet:.1f} % wet ({WET:g} mm/h and more)"
