"""Rain cells on maps: their outlines, and arrows to where they move."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nowcast.plot.figure import OUTLINE

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class CellShape(NamedTuple):
    """A cell as it is drawn.

    Parameters
    ----------
    time : datetime64
        UTC.
    rings : tuple of (n, 2) float64
        Outline and holes, x and y in km on the grid.
    way : (2, 2) float64 or None
        Its middle and where that will be, x and y in km; None of a cell whose motion is not known.
    """

    time: np.datetime64
    rings: tuple[NDArray[np.float64], ...]
    way: NDArray[np.float64] | None


def draw_cells(axes: Axes, shapes: Iterable[CellShape]) -> None:
    """Draw cells on a map in km, whose limits stay."""
    axes.autoscale(False)
    for shape in shapes:
        for ring in shape.rings:
            axes.plot(*ring.T, color=OUTLINE, linewidth=0.6)
        if shape.way is not None:
            start, end = shape.way
            axes.annotate(
                "", end, start, annotation_clip=True,
                arrowprops={"arrowstyle": "->", "color": OUTLINE, "linewidth": 0.7,
                            "shrinkA": 0, "shrinkB": 0, "mutation_scale": 6},
            )  # fmt: skip
