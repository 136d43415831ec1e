"""A map of rain on axes in kilometres, and the legend that explains its colours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nowcast.plot.colours import LEVELS, rain_colours
from nowcast.plot.figure import FAINT
from nowcast.plot.panels import edges

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import BoundaryNorm, ListedColormap
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage


def draw_rain(
    axes: Axes, rain: NDArray[np.floating], x: NDArray[Any], y: NDArray[Any]
) -> AxesImage:
    """Draw a map of rain.

    Parameters
    ----------
    axes : Axes
    rain : (y, x)
        mm h-1; NaN where missing.
    x, y : (nx,), (ny,)
        Middles of the cells in metres, increasing.

    Returns
    -------
    AxesImage
        What the legend is made from; its data may be replaced by :func:`masked` ones.
    """
    return draw_field(axes, rain, x, y, *rain_colours())


def draw_field(
    axes: Axes,
    field: NDArray[np.floating],
    x: NDArray[Any],
    y: NDArray[Any],
    colours: ListedColormap,
    norm: BoundaryNorm,
) -> AxesImage:
    """Draw a map of anything (y, x) in given colours; otherwise as `draw_rain`."""
    image = axes.imshow(
        masked(field),
        origin="lower",
        extent=(*edges(x), *edges(y)),
        cmap=colours,
        norm=norm,
        # Cells smaller than pixels are blended as colours: there are no rates between the two.
        interpolation="auto",
        interpolation_stage="rgba",
    )
    axes.set_aspect("equal")
    axes.tick_params(labelsize=7, length=2.5, color=FAINT, labelcolor=FAINT)
    axes.locator_params(nbins=5, steps=[1, 2, 5, 10])
    for side in axes.spines.values():
        side.set(color=FAINT, linewidth=0.6)
    return image


def masked(rain: NDArray[np.floating]) -> Any:
    """Return rain as the colours want it, without what is missing."""
    return np.ma.masked_invalid(rain)


def add_legend(figure: Figure, image: AxesImage, axes: Sequence[Axes], height: float = 1.0) -> None:
    """Put the colour scale beside some axes."""
    bar = figure.colorbar(
        image, ax=list(axes), ticks=LEVELS, extend="max", shrink=0.92 * height, pad=0.015, aspect=26
    )
    bar.ax.set_yticklabels([f"{level:g}" for level in LEVELS], fontsize=8)
    bar.ax.tick_params(length=2.5, color=FAINT)
    bar.outline.set(color=FAINT, linewidth=0.6)
    bar.set_label("rain rate (mm h$^{-1}$), grey where missing", fontsize=8)
