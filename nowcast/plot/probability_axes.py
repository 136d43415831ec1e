"""A map of probability, the outline of what was observed on it, and the legend of its colours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nowcast.plot.figure import (
    FAINT,
    OUTLINE,
    PROBABILITIES,
    PROBABILITY_LEVELS,
    probability_colours,
)
from nowcast.plot.rain import draw_field

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
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


def add_probability_legend(
    figure: Figure, image: AxesImage, axes: Sequence[Axes], height: float = 1.0
) -> None:
    """Put the colour scale of probabilities beside some axes."""
    bar = figure.colorbar(
        image, ax=list(axes), ticks=PROBABILITY_LEVELS, shrink=0.92 * height, pad=0.015,
        aspect=4 + 2 * len(PROBABILITIES),
    )  # fmt: skip
    bar.ax.set_yticklabels([f"{100 * level:g}" for level in PROBABILITY_LEVELS], fontsize=8)
    bar.ax.tick_params(length=2.5, color=FAINT)
    bar.outline.set(color=FAINT, linewidth=0.6)
    bar.set_label("probability (%), black: observed", fontsize=8)
