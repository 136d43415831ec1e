"""Forecasts and observation in one picture: a row per forecaster, a column per lead time."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import SettingsError
from nowcast.plot.figure import (
    FAINT,
    LEVELS,
    PROBABILITY_LEVELS,
    named_simulated,
    new_figure,
    probability_colours,
    save,
)
from nowcast.plot.panels import OBSERVED, Panels
from nowcast.plot.place import draw_place
from nowcast.plot.rain import CellShape, add_legend, draw_cells, draw_field, draw_outline, draw_rain

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

#: Largest number of columns if no lead times are chosen.
COLUMNS = 6
#: Width of a map in inches.
WIDTH = 1.95


def plot_forecast(
    forecast: xr.Dataset | xr.DataArray | Mapping[str, xr.Dataset | xr.DataArray],
    path: Path,
    *,
    observed: xr.DataArray | None = None,
    before: xr.DataArray | None = None,
    title: str | None = None,
    leads: Sequence[float] | None = None,
    thresholds: Sequence[float] | None = None,
    members: int = 0,
    zoom_km: float | None = None,
    cells: Mapping[str, Sequence[CellShape]] | None = None,
) -> None:
    """Write the picture as PNG.

    Parameters
    ----------
    forecast : Dataset or DataArray (lead_time, y, x), or mapping of str to these
        Rain rate in mm h-1 from :func:`nowcast.forecasters.predict.predict`; several get a row
        each.
    path : path
    observed : DataArray (time, y, x) or (lead_time, y, x), optional
        Rain rate on the same grid, shown in the first row.
    before : DataArray (time, y, x), optional
        Input frames of the forecast; the last one is shown in the first column.
    title : str, optional
        By default station, method and time of the forecast. Simulated data is marked.
    leads : sequence of float, optional
        Lead times in minutes to show; by default up to six.
    thresholds : sequence of float, optional
        Rain rates in mm h-1 whose probability gets a row, with the outline of the observed area; by
        default 1, if forecasts have probabilities.
    members : int
        Number of members that get a row, if forecasts have them.
    zoom_km : float, optional
        Side of the shown square, which is the one with the most rain; by default the whole grid.
    cells : mapping of str to sequence of CellShape, optional
        Cells to draw, of all times, by the names of rows: ``"observed"`` or a forecast's. The last
        frame shows the cells of ``"observed"``.

    Raises
    ------
    DataError
        When grids or lead times do not match.
    SettingsError
        When a lead time or the probability of a threshold is not in the forecast.

    Examples
    --------
    >>> import xarray as xr
    >>> rain = np.eye(8, dtype=np.float32)[None] * 5
    >>> lead = np.array([5], "timedelta64[m]").astype("timedelta64[ns]")
    >>> where = {"lead_time": lead, "y": np.arange(8) * 1000.0, "x": np.arange(8) * 1000.0}
    >>> forecast = xr.Dataset({"rain_rate": (("lead_time", "y", "x"), rain)}, where)
    >>> forecast["forecast_reference_time"] = np.datetime64("2021-03-04T12:00", "ns")
    >>> forecast = forecast.set_coords("forecast_reference_time")
    >>> plot_forecast(forecast, Path("forecast.png"))
    >>> from nowcast.plot import animate_forecast
    >>> animate_forecast(forecast, Path("forecast.gif"))
    >>> Path("forecast.png").exists(), Path("forecast.gif").exists()
    (True, True)
    """
    panels = Panels.of(forecast, observed, before, thresholds, members)
    panels = panels if zoom_km is None else panels.zoomed(zoom_km)
    # Columns count from the last frame, which is -1.
    last = [-1] if len(panels.before) else []
    columns = last + _columns(panels.minutes, leads)
    height = WIDTH * panels.aspect
    figure = new_figure(
        (WIDTH + 0.08) * len(columns) + (2.35 if panels.probabilities else 1.55),
        (height + 0.03) * len(panels.rows) + 0.95,
    )
    grid = figure.subplots(len(panels.rows), len(columns), squeeze=False, sharex=True, sharey=True)
    names = {name: _wrapped(name, height) for name in panels.rows}
    # The layout makes room for one line of the rows' names.
    more = 0.17 * max(name.count("\n") for name in names.values()) / figure.get_figwidth()
    pads = {"w_pad": 0.03, "h_pad": 0.03, "wspace": 0.0, "hspace": 0.02}
    layout: Any = figure.get_layout_engine()
    layout.set(**pads, rect=(more, 0, 1 - more, 1))
    images: dict[str, AxesImage] = {}
    for axes_of_row, name in zip(grid, panels.rows, strict=True):
        for axes, index in zip(axes_of_row, columns, strict=True):
            images[name] = draw_row(axes, panels, name, index)
            across, up = draw_place(axes, panels.place, panels.x, panels.y)
            if cells and name not in panels.probabilities:
                shown_cells = cells.get(name if index >= 0 else OBSERVED, ())
                time = panels.time(index)
                draw_cells(axes, [cell for cell in shown_cells if cell.time == time])
        first = axes_of_row[0]
        first.set_ylabel(up, fontsize=7, color=FAINT, labelpad=2)
        shown = names[name]
        first.annotate(
            shown, (0, 0.5), (-5, 0), xycoords=first.yaxis.label, textcoords="offset points",
            rotation=90, ha="right", va="center", fontsize=9 if "\n" in shown else 10,
            fontweight="bold", multialignment="center",
        )  # fmt: skip
    for axes, index in zip(grid[0], columns, strict=True):
        minutes = panels.minutes_before[-1] if index < 0 else panels.minutes[index]
        name = f"+{minutes:g} min" if index >= 0 else "last frame"
        axes.set_title(name, fontsize=10, pad=14 if panels.reference else 4)
        axes.text(
            0.5, 1.02, panels.when(minutes), transform=axes.transAxes, ha="center", va="bottom",
            fontsize=8, color=FAINT,
        )  # fmt: skip
    for axes in grid[-1]:
        axes.set_xlabel("\n".join(textwrap.wrap(across, 26)), fontsize=7, color=FAINT, labelpad=2)
    add_legends(figure, panels, images, grid.ravel().tolist(), min(1.0, 4 / len(panels.rows)))
    figure.suptitle(heading(panels, title), fontsize=12)
    save(figure, path)


def draw_row(
    axes: Axes, panels: Panels, name: str, index: int, *, outline: bool = True
) -> AxesImage:
    """Draw a row's field at one lead, or the last frame (-1).

    A map of probability has the outline of the observed area; an empty map says why.
    """
    field = panels.rows[name][index] if index >= 0 else panels.input_of(name, -1)
    chance = name in panels.probabilities
    known = field[np.isfinite(field)]
    if outline and (not known.size or known.max() < (PROBABILITY_LEVELS if chance else LEVELS)[0]):
        label = f"below {PROBABILITY_LEVELS[0]:.0%}" if chance else "no rain"
        axes.text(
            0.5, 0.5, label if known.size else f"not {name}", transform=axes.transAxes, ha="center",
            va="center", fontsize=8, color=FAINT, zorder=5,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1, "alpha": 0.8},
        )  # fmt: skip
    if not chance:
        return draw_rain(axes, field, panels.x, panels.y)
    image = draw_field(axes, field, panels.x, panels.y, *probability_colours())
    if outline and OBSERVED in panels.rows and index >= 0:
        event = panels.rows[OBSERVED][index] >= panels.probabilities[name]
        draw_outline(axes, event, panels.x, panels.y)
    return image


def add_legends(
    figure: Figure,
    panels: Panels,
    images: Mapping[str, AxesImage],
    axes: Sequence[Axes],
    height: float = 1.0,
) -> None:
    """Put the legends of rain and, if there are any, of probabilities next to all maps.

    - ``images``: one map of each row.
    - ``axes``: axes of all maps.
    - ``height``: height of a legend as a fraction of the height of all maps.
    """
    rain = [name for name in panels.rows if name not in panels.probabilities]
    for name in [*rain[:1], *list(panels.probabilities)[:1]]:
        add_legend(figure, images[name], axes, height, chance=name in panels.probabilities)


def _wrapped(name: str, height: float) -> str:
    """Return a row's name broken into lines no longer than its maps' ``height`` in inches."""
    letters = max(10, int(72 * height / 6))
    return "\n".join("\n".join(textwrap.wrap(line, letters)) for line in name.split("\n"))


def heading(panels: Panels, title: str | None) -> str:
    """Return the title, which always names simulated data as such."""
    return panels.title if title is None else named_simulated(title, panels.simulated)


def _columns(minutes: NDArray[np.float64], leads: Sequence[float] | None) -> list[int]:
    """Return the indices of the lead times to show."""
    if leads is None:
        count = min(COLUMNS, len(minutes))
        # Evenly to the last: with twelve leads every second one.
        return (np.linspace(0, len(minutes), count + 1)[1:].round().astype(int) - 1).tolist()
    columns = []
    for lead in leads:
        matching = np.flatnonzero(np.isclose(minutes, lead))
        if not matching.size:
            raise SettingsError(
                f"leads: expected lead times among {', '.join(f'{m:g}' for m in minutes)} min, "
                f"found {lead:g}; choose among them, or predict with a longer --lead"
            )
        columns.append(int(matching[0]))
    if not columns:
        raise SettingsError("leads: expected one lead time at least, found none")
    return columns
