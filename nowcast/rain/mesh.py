"""Mesh of a grid: how far apart its points are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import DataError

#: Cells may be so many times as long as they are wide: those of degrees are oblong.
MOST_OBLONG = 3.0


def mean_spacing(y: NDArray[np.floating], x: NDArray[np.floating], where: str) -> float:
    """Return the distance of a grid's points in m: the side of a square as large as its cells.

    Motion and windows need a length of a pixel, and no more than that: displacements are in pixels.

    Parameters
    ----------
    y, x : ndarray, (n,)
        Coordinates of the rows and columns in m.
    where : str
        Whose grid it is, for the error.

    Raises
    ------
    DataError
        When a coordinate has one value, or cells are longer than wide by more than `MOST_OBLONG`.
    """
    sides = []
    for name, values in (("y", y), ("x", x)):
        if len(values) < 2:
            raise DataError(
                f"{where}: expected at least 2 cells along {name}, found {len(values)}; give a "
                "larger grid"
            )
        sides.append(abs(float(values[-1] - values[0])) / (len(values) - 1))
    long, short = max(sides), min(sides)
    if not 0 < long <= MOST_OBLONG * short:
        raise DataError(
            f"{where}: expected cells at most {MOST_OBLONG:g} times as long as wide, found "
            f"{sides[0]:g} m by {sides[1]:g} m; put the rain on another grid first"
        )
    return (long * short) ** 0.5
