"""Places at which rain is wanted: any, or the cells of a grid, whose windows are quick to find."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Field = NDArray[np.float32]


@dataclass(frozen=True)
class Points:
    """Places (metres) that broadcast together; of axes of a grid the part in a window is quick."""

    x: Field
    y: Field

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape that x and y broadcast to."""
        return np.broadcast_shapes(self.x.shape, self.y.shape)

    def within(
        self, low: NDArray[np.float64], high: NDArray[np.float64]
    ) -> tuple[Any, Field, Field] | None:
        """Return index, x and y of the points in a rectangle, or None when there is none."""
        in_x = (self.x > low[0]) & (self.x < high[0])
        in_y = (self.y > low[1]) & (self.y < high[1])
        if in_x.ndim == 2 and in_x.shape[0] == 1 and in_y.ndim == 2 and in_y.shape[1] == 1:
            columns, rows = np.flatnonzero(in_x), np.flatnonzero(in_y)
            if not (columns.size and rows.size):
                return None
            across, down = slice(columns[0], columns[-1] + 1), slice(rows[0], rows[-1] + 1)
            return (down, across), self.x[:, across], self.y[down, :]
        inside = np.broadcast_to(in_x & in_y, self.shape)
        if not inside.any():
            return None
        x, y = np.broadcast_arrays(self.x, self.y)
        return inside, x[inside], y[inside]
