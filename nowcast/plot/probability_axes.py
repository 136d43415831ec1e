"""A map of probability, and the outline of what was observed on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nowcast.plot.figure import OUTLINE, probability_colours
from nowcast.plot.rain import draw_field

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage


def draw_probability(
    axes: Axes, probability: NDArray[np.floating], x: NDArray[Any], y: NDArray[Any]
) -> AxesImage:
    """Draw a map of probability (y, x), 0 to 1; see `nowcast.plot.rain.draw_rain`."""
    return draw_field(axes, probability, x, y, *probability_colours())


def draw_outline(
    axes: Axes, event: NDArray[np.bool_], x: NDArray[Any], y: NDArray[Any]
) -> list[Any]:
    """Draw the outline of where there was an event (y, x); return what may be removed again."""
    if not event.any() or event.all() or min(event.shape) < 2:
        return []
    lines = axes.contour(
        x / 1e3, y / 1e3, event.astype(float), levels=[0.5], colors=[OUTLINE], linewidths=0.7
    )
    return [lines]
