"""One field of rain as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from daskdl.errors import DataError
from nowcast.plot.figure import FAINT, new_figure, save
from nowcast.plot.panels import edges
from nowcast.plot.rain_axes import add_legend, draw_rain
from nowcast.rain.simulated import is_simulated

if TYPE_CHECKING:
    import xarray as xr


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
        When it is not one field.

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
    if is_simulated(frame) and "simulated" not in title.lower():
        title = f"Simulated data: {title[0].lower()}{title[1:]}"
    x, y = frame["x"].values, frame["y"].values
    (south, north), (west, east) = edges(y), edges(x)
    height = 5.2 * float(np.clip((north - south) / (east - west), 0.3, 3.0))
    figure = new_figure(6.4, height + 0.75)
    axes = figure.subplots()
    image = draw_rain(axes, frame.values, x, y)
    axes.set_xlabel("x (km)", fontsize=8, color=FAINT)
    axes.set_ylabel("y (km)", fontsize=8, color=FAINT)
    axes.set_title(title, fontsize=11)
    add_legend(figure, image, [axes])
    save(figure, path)
