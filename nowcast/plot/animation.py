"""A forecast next to the observation, as an animated GIF with one image per time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from daskdl.errors import needed
from daskdl.files import replacing
from nowcast.plot.bare import FRAME
from nowcast.plot.figure import COLOURS, DRY, EXTREME, FAINT, MISSING, PROBABILITIES, new_figure
from nowcast.plot.forecast import add_legends, draw_row, heading
from nowcast.plot.panels import OBSERVED, Panels
from nowcast.plot.place import draw_place
from nowcast.plot.rain import draw_outline

#: Duration of the last image in milliseconds.
LAST = 1800
#: Width of a map in inches, and pixels per inch.
WIDTH, DPI = 4.0, 100
#: Greys among the colours of the animation, for text and smooth edges; none so near to white or to
#: the grey of missing pixels that pillow's coarse search would take it for them.
GREYS = np.linspace(0.0, 0.76, 28)


def animate_forecast(
    forecast: xr.Dataset | xr.DataArray | Mapping[str, xr.Dataset | xr.DataArray],
    path: Path,
    *,
    observed: xr.DataArray | None = None,
    before: xr.DataArray | None = None,
    title: str | None = None,
    thresholds: Sequence[float] | None = None,
    members: int = 0,
    zoom_km: float | None = None,
) -> None:
    """Write the animation.

    Parameters
    ----------
    forecast : Dataset or DataArray (lead_time, y, x), or mapping of str to these
        Rain rate in mm h-1 from :func:`nowcast.forecasters.predict.predict`; several are shown side
        by side.
    path : path
        By convention with the suffix ``.gif``.
    observed : DataArray (time, y, x) or (lead_time, y, x), optional
        Rain rate on the same grid, shown on the left.
    before : DataArray (time, y, x), optional
        Input frames of the forecast, shown first, on all maps.
    title : str, optional
        By default the start of the forecast. Simulated data is always marked as simulated.
    thresholds, members, zoom_km
        Probabilities and members to show, and the part of the grid, see
        :func:`nowcast.plot.forecast.plot_forecast`.

    Raises
    ------
    DataError
        When grids or lead times do not match.
    SettingsError
        When no forecast has the probability of a threshold.
    MissingExtraError
        When pillow is not installed.

    The example of :func:`nowcast.plot.plot_forecast` writes a GIF too.
    """
    with needed("animations need pillow ({error}); pip install 'daskdl[nowcast]'"):
        from PIL import Image

    panels = Panels.of(forecast, observed, before, thresholds, members)
    panels = panels if zoom_km is None else panels.zoomed(zoom_km)
    table = Image.new("P", (1, 1))
    table.putpalette(_palette())
    images = [
        Image.fromarray(pixels).quantize(palette=table, dither=Image.Dither.NONE)
        for pixels in _images(panels, heading(panels, title))
    ]
    with replacing(Path(path)) as temporary:
        images[0].save(
            temporary,
            format="GIF",
            save_all=True,
            append_images=images[1:],
            duration=[FRAME] * (len(images) - 1) + [LAST],
            loop=0,
        )


def _palette() -> list[int]:
    """Return the common colour table, red, green and blue in turn; rain colours are exact."""
    from matplotlib.colors import to_rgb

    named = [to_rgb(c) for c in (DRY, *COLOURS, EXTREME, MISSING, *PROBABILITIES)]
    greys = [(level, level, level) for level in GREYS]
    return [round(255 * part) for colour in (*named, *greys) for part in colour]


def _images(panels: Panels, title: str) -> Iterator[NDArray[np.uint8]]:
    """Yield the pixels (height, width, 3) of each image: inputs first, then one per lead time."""
    names = list(panels.rows)
    figure = new_figure(
        WIDTH * len(names) + (1.9 if panels.probabilities else 1.1), WIDTH * panels.aspect + 1.15
    )
    figure.set_layout_engine("compressed")  # maps keep their shape: labels get their room
    grid = figure.subplots(1, len(names), squeeze=False, sharey=True)[0]
    figure.suptitle(title, fontsize=12)
    maps = []
    for axes, name in zip(grid, names, strict=True):
        maps.append(draw_row(axes, panels, name, 0, outline=False))
        across, up = draw_place(axes, panels.place, panels.x, panels.y)
        axes.set_xlabel(across, fontsize=8, color=FAINT)
    grid[0].set_ylabel(up, fontsize=8, color=FAINT)
    clock = figure.supxlabel(" ", fontsize=11, fontweight="bold")
    add_legends(figure, panels, dict(zip(names, maps, strict=True)), grid.tolist())
    outlines: list[Any] = []
    steps = [
        (minutes, [panels.input_of(name, index) for name in names], True)
        for index, minutes in enumerate(panels.minutes_before)
    ]
    steps += [
        (minutes, [panels.rows[name][index] for name in names], False)
        for index, minutes in enumerate(panels.minutes)
    ]
    canvas: Any = figure.canvas
    for number, (minutes, fields, is_input) in enumerate(steps):
        for image, axes, name, field in zip(maps, grid, names, fields, strict=True):
            image.set_data(np.ma.masked_invalid(field))
            shown = name if not is_input or name == OBSERVED else f"{name}: input"
            axes.set_title(shown, fontsize=11, fontweight="normal" if is_input else "bold")
        for outline in outlines:
            outline.remove()
        outlines = [] if is_input else _outlines(panels, grid, number - len(panels.before))
        moment = f"{minutes:+.0f} min".replace("-", "\N{MINUS SIGN}") if minutes else "0 min"
        clock.set_text(f"{moment}   {panels.when(minutes)}".rstrip())
        clock.set_color(FAINT if is_input else "black")
        figure.set_dpi(DPI)
        canvas.draw()
        if number == 0:  # the layout stays fixed; labels' room is known the second time
            canvas.draw()
            figure.set_layout_engine("none")
        yield np.asarray(canvas.buffer_rgba())[..., :3].copy()


def _outlines(panels: Panels, grid: Any, index: int) -> list[Any]:
    """Draw outlines of the observed rain at a lead on the maps of probability."""
    if OBSERVED not in panels.rows:
        return []
    drawn = []
    for axes, name in zip(grid, panels.rows, strict=True):
        if name in panels.probabilities:
            event = panels.rows[OBSERVED][index] >= panels.probabilities[name]
            drawn += draw_outline(axes, event, panels.x, panels.y)
    return drawn
