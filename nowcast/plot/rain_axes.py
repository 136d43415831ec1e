"""A field of rain on axes in kilometres, in the colours that rain has everywhere here."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Edges of the colour scale, mm h-1; below the first there is no colour.
LEVELS = (0.1, 0.5, 1, 2, 5, 10, 20, 50, 100)
# From light to dark in even steps: it reads in grey, and without telling red from green.
_COLOURS = (
    "#c6dbef", "#9ecae1", "#6baed6", "#3182bd", "#7a5fb5", "#a1409a", "#c51b6e", "#6e0030",
)  # fmt: skip
MISSING = "#d9d9d9"


def rain_colours() -> tuple[Any, Any]:
    """Return the colour map and its norm: white when dry, grey where missing."""
    from matplotlib.colors import BoundaryNorm, ListedColormap

    colours = ListedColormap(list(_COLOURS), under="white", over="#2b0014", bad=MISSING)
    return colours, BoundaryNorm(LEVELS, len(_COLOURS))


def draw_rain(axes: Any, rain: NDArray[np.floating], x: NDArray[Any], y: NDArray[Any]) -> Any:
    """Draw rain (y, x) in mm h-1 over x and y in metres; returns what a colour bar is made of."""
    colours, norm = rain_colours()
    half = (x[1] - x[0]) / 2e3, (y[1] - y[0]) / 2e3
    extent = (
        x[0] / 1e3 - half[0], x[-1] / 1e3 + half[0], y[0] / 1e3 - half[1], y[-1] / 1e3 + half[1],
    )  # fmt: skip
    image = axes.imshow(
        np.ma.masked_invalid(rain),
        origin="lower",
        extent=extent,
        cmap=colours,
        norm=norm,
        interpolation="nearest",
    )
    axes.set_aspect("equal")
    axes.tick_params(labelsize=7, length=2)
    return image


def add_scale(figure: Any, image: Any, axes: Any) -> None:
    """Put the colour bar beside some axes."""
    bar = figure.colorbar(image, ax=axes, ticks=LEVELS, extend="max", shrink=0.9, pad=0.01)
    bar.ax.set_yticklabels([f"{level:g}" for level in LEVELS], fontsize=8)
    bar.set_label("rain rate (mm h$^{-1}$); grey: missing", fontsize=8)
