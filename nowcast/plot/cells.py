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
    """A cell as it is drawn."""

    time: np.datetime64  #: UTC.
    rings: tuple[NDArray[np.float64], ...]  #: Outline and holes, x and y in km on the grid.
    #: Its middle and where that will be, x and y in km; None of a cell whose motion is not known.
    way: NDArray[np.float64] | None


def draw_cells(axes: Axes, shapes: Iterable[CellShape]) -> None:
    """Draw cells on a map in km, whose limits stay; arrows of slow cells are short, or dots."""
    from matplotlib.collections import LineCollection
    from matplotlib.quiver import Quiver

    shapes = list(shapes)
    rings = [ring for shape in shapes for ring in shape.rings]
    # Maps of a figure share their limits, which a cell beside one of them would move in all.
    axes.add_collection(LineCollection(rings, colors=OUTLINE, linewidths=0.6), autolim=False)
    ways = np.array([shape.way for shape in shapes if shape.way is not None]).reshape(-1, 2, 2)
    arrows = Quiver(
        axes, *ways[:, 0].T, *(ways[:, 1] - ways[:, 0]).T, angles="xy", scale_units="xy", scale=1,
        units="inches", width=0.009, headwidth=5, headlength=5, headaxislength=4.5, color=OUTLINE,
    )  # fmt: skip
    axes.add_collection(arrows, autolim=False)
