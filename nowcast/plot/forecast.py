"""A forecast beside what was observed, as one picture: rows of fields, lead times as columns."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from nowcast.plot.figure import new_figure, save
from nowcast.plot.panels import Panels
from nowcast.plot.rain_axes import add_scale, draw_rain

if TYPE_CHECKING:
    import xarray as xr

#: Columns that still can be read.
COLUMNS = 6


def plot_forecast(
    forecast: xr.Dataset, path: Path, *, observed: xr.DataArray | None = None
) -> None:
    """Write the picture as PNG.

    Parameters
    ----------
    forecast : Dataset
        From :func:`nowcast.predict.predict`.
    path : path
    observed : DataArray (time, y, x), optional
        Rain rate at the forecast's times.
    """
    panels = Panels.of(forecast, observed)
    count = min(COLUMNS, len(panels.lead_minutes))
    chosen = np.linspace(0, len(panels.lead_minutes) - 1, count).round().astype(int)
    aspect = len(panels.y) / len(panels.x)
    figure = new_figure(1.9 * count + 1.3, 1.9 * aspect * len(panels.rows) + 0.9)
    grid = figure.subplots(len(panels.rows), count, squeeze=False, sharex=True, sharey=True)
    image = None
    for row, (name, fields) in enumerate(panels.rows.items()):
        for column, index in enumerate(chosen):
            axes = grid[row, column]
            image = draw_rain(axes, fields[index], panels.x, panels.y)
            if row == 0:
                axes.set_title(f"+{panels.lead_minutes[index]:g} min", fontsize=9)
        grid[row, 0].set_ylabel(f"{name}\ny (km)", fontsize=9)
    for axes in grid[-1]:
        axes.set_xlabel("x (km)", fontsize=8)
    add_scale(figure, image, grid)
    figure.suptitle(panels.title, fontsize=11)
    save(figure, path)
