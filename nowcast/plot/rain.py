"""One field of rain as a picture, its axes in kilometres, and cells on it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import DataError
from nowcast.plot.figure import (
    FAINT,
    LEVELS,
    OUTLINE,
    PROBABILITY_LEVELS,
    named_simulated,
    new_figure,
    rain_colours,
    save,
)
from nowcast.plot.panels import edges
from nowcast.plot.place import Place, draw_place
from nowcast.rain.identity import is_simulated

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.colors import BoundaryNorm, ListedColormap
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage


def draw_rain(
    axes: Axes, rain: NDArray[np.floating], x: NDArray[Any], y: NDArray[Any]
) -> AxesImage:
    """Draw a map of rain.

    - ``rain`` (y, x): mm h-1; NaN where missing.
    - ``x``, ``y``: middles of the cells in metres, increasing.
    - returns: the image for the legend; its data may be replaced by masked data.
    """
    return draw_field(axes, rain, x, y, *rain_colours())


def draw_field(
    axes: Axes, field: NDArray[np.floating], x: NDArray[Any], y: NDArray[Any],
    colours: ListedColormap, norm: BoundaryNorm,
) -> AxesImage:  # fmt: skip
    """Draw a map of any field (y, x) in given colours; otherwise like `draw_rain`."""
    image = axes.imshow(
        np.ma.masked_invalid(field), origin="lower", extent=(*edges(x), *edges(y)),
        cmap=colours, norm=norm,
        # Cells smaller than pixels are blended as colours: there are no rates between the two.
        interpolation="auto", interpolation_stage="rgba",
    )  # fmt: skip
    axes.set_aspect("equal")
    axes.tick_params(labelsize=7, length=2.5, color=FAINT, labelcolor=FAINT)
    for side in axes.spines.values():
        side.set(color=FAINT, linewidth=0.6)
    return image


def draw_outline(
    axes: Axes, event: NDArray[np.bool_], x: NDArray[Any], y: NDArray[Any]
) -> list[Any]:
    """Draw the outline of an event's area (y, x); return the removable artist."""
    if not event.any() or event.all() or min(event.shape) < 2:
        return []
    lines = axes.contour(
        x / 1e3, y / 1e3, event.astype(float), levels=[0.5], colors=[OUTLINE], linewidths=0.7
    )
    return [lines]


def add_legend(
    figure: Figure, image: AxesImage, axes: Sequence[Axes], height: float = 1.0,
    *, chance: bool = False,
) -> None:  # fmt: skip
    """Put the colour scale of rain, or of probabilities, next to some axes."""
    levels = PROBABILITY_LEVELS if chance else LEVELS
    bar = figure.colorbar(
        image, ax=list(axes), ticks=levels, extend="neither" if chance else "max",
        shrink=0.92 * height, pad=0.015, aspect=24 if chance else 26,
    )  # fmt: skip
    bar.ax.set_yticklabels([f"{level * (100 if chance else 1):g}" for level in levels], fontsize=8)
    bar.ax.tick_params(length=2.5, color=FAINT)
    bar.outline.set(color=FAINT, linewidth=0.6)
    rain = "rain rate (mm h$^{-1}$), grey where missing"
    bar.set_label("probability (%), black: observed" if chance else rain, fontsize=8)


def plot_rain(frame: xr.DataArray, path: Path, *, title: str | None = None) -> None:
    """Write a map of rain as PNG.

    Parameters
    ----------
    frame : DataArray (y, x)
        Rain rate in mm h-1 with coordinates x and y in metres, such as one time of a rain store.
    path : path
    title : str, optional
        By default its time.

    Raises
    ------
    DataError
        When ``frame`` is not one field.

    Examples
    --------
    >>> import xarray as xr
    >>> where = {"y": np.arange(8) * 1000.0, "x": np.arange(8) * 1000.0}
    >>> frame = xr.DataArray(np.eye(8, dtype=np.float32) * 5, where, ("y", "x"))
    >>> plot_rain(frame, Path("rain.png"), title="A line of rain")
    >>> Path("rain.png").exists()
    True
    """
    if set(frame.dims) != {"y", "x"}:
        raise DataError(
            f"plot_rain: expected rain (y, x), found dimensions {tuple(map(str, frame.dims))}; "
            "choose one time, such as rain.isel(time=0)"
        )
    frame = frame.transpose("y", "x")
    if title is None:
        title = "Rain rate"
        if "time" in frame.coords:
            time = frame["time"].values.astype("datetime64[us]").item()
            title += f" at {time:%Y-%m-%d %H:%M} UTC"
    title = named_simulated(title, is_simulated(frame), lower=True)
    x, y = frame["x"].values, frame["y"].values
    (south, north), (west, east) = edges(y), edges(x)
    height = 5.2 * float(np.clip((north - south) / (east - west), 0.3, 3.0))
    figure = new_figure(6.4, height + 0.75)
    axes = figure.subplots()
    image = draw_rain(axes, frame.values, x, y)
    across, up = draw_place(axes, Place.of(frame), x, y)
    axes.set_xlabel(across, fontsize=8, color=FAINT)
    axes.set_ylabel(up, fontsize=8, color=FAINT)
    axes.set_title(title, fontsize=11)
    add_legend(figure, image, [axes])
    save(figure, path)


class CellShape(NamedTuple):
    """The shape of a cell for a drawing."""

    time: np.datetime64  #: UTC.
    rings: tuple[NDArray[np.float64], ...]  #: Outline and holes, x and y in km on the grid.
    #: Its middle, now and later, x and y in km; None if its motion is not known.
    way: NDArray[np.float64] | None


def draw_cells(axes: Axes, shapes: Iterable[CellShape]) -> None:
    """Draw cells on a map in km, whose limits stay; arrows of slow cells are short, or dots."""
    from matplotlib.collections import LineCollection
    from matplotlib.quiver import Quiver

    shapes = list(shapes)
    rings = [ring for shape in shapes for ring in shape.rings]
    # Maps of a figure share their limits, which a cell outside one of them would move in all.
    axes.add_collection(LineCollection(rings, colors=OUTLINE, linewidths=0.6), autolim=False)
    ways = np.array([shape.way for shape in shapes if shape.way is not None]).reshape(-1, 2, 2)
    arrows = Quiver(
        axes, *ways[:, 0].T, *(ways[:, 1] - ways[:, 0]).T, angles="xy", scale_units="xy", scale=1,
        units="inches", width=0.009, headwidth=5, headlength=5, headaxislength=4.5, color=OUTLINE,
    )  # fmt: skip
    axes.add_collection(arrows, autolim=False)
