"""A forecast beside what was observed, as an animated GIF: one image a lead time."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from nowcast.plot.figure import new_figure
from nowcast.plot.panels import Panels
from nowcast.plot.rain_axes import add_scale, draw_rain
from nowcast.replacing import beside

if TYPE_CHECKING:
    import xarray as xr

#: How long an image stays, and how long the last one, in milliseconds.
FRAME, LAST = 450, 1500


def animate_forecast(
    forecast: xr.Dataset, path: Path, *, observed: xr.DataArray | None = None
) -> None:
    """Write the animation.

    Parameters
    ----------
    forecast : Dataset
        From :func:`nowcast.predict.predict`.
    path : path
        By convention with the suffix ``.gif``.
    observed : DataArray (time, y, x), optional
        Rain rate at the forecast's times, shown on the left.
    """
    from PIL import Image

    panels = Panels.of(forecast, observed)
    aspect = len(panels.y) / len(panels.x)
    images = []
    for index, lead in enumerate(panels.lead_minutes):
        figure = new_figure(4.2 * len(panels.rows) + 1.0, 4.2 * aspect + 0.8)
        grid = figure.subplots(1, len(panels.rows), squeeze=False, sharey=True)[0]
        image = None
        for axes, (name, fields) in zip(grid, panels.rows.items(), strict=True):
            image = draw_rain(axes, fields[index], panels.x, panels.y)
            axes.set_title(name, fontsize=10)
            axes.set_xlabel("x (km)", fontsize=8)
        grid[0].set_ylabel("y (km)", fontsize=8)
        add_scale(figure, image, grid)
        figure.suptitle(f"{panels.title}, +{lead:g} min", fontsize=11)
        buffer = BytesIO()
        figure.savefig(buffer, format="png", dpi=90)
        images.append(Image.open(buffer).convert("RGB").quantize(64))
    durations = [FRAME] * (len(images) - 1) + [LAST]
    with beside(path) as temporary:
        images[0].save(
            temporary,
            format="GIF",
            save_all=True,
            append_images=images[1:],
            duration=durations,
            loop=0,
        )
