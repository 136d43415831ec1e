"""Pictures of a radar's echoes: a sweep before and after cleaning, and the ground's climate."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nowcast.plot.figure import FAINT, METHODS, new_figure, save
from nowcast.plot.place import Place, draw_place
from nowcast.plot.rain import add_legend, draw_field, draw_rain
from nowcast.quality.clean import STEPS, Cleaned
from nowcast.quality.climate import Climate
from nowcast.radar.polar.sweep import Sweep
from nowcast.rain.rainrate import ZRRelation

#: Cells along each side of the map.
CELLS = 800


def plot_cleaning(
    before: Sweep, cleaned: Cleaned, path: Path, station: str, reach: float | None = None
) -> None:
    """Write a PNG of a sweep before and after its cleaning, and of the echo that each step removed.

    - ``cleaned``: result of the cleaning.
    - ``station``: name of the radar, for the title.
    - ``reach``: metres from the radar to the sides of the map; by default the extent of the rain.
    """
    from matplotlib.colors import BoundaryNorm, ListedColormap
    from matplotlib.patches import Patch

    assert before.dbz is not None
    assert cleaned.sweep.dbz is not None
    relation = ZRRelation()
    rain = relation.rain_rate(before.dbz)
    if reach is None:
        far = before.range[(rain > 0).any(axis=0)]
        reach = float(far.max()) if far.size else before.reach
    axis = (np.arange(CELLS) + 0.5) * (2 * reach / CELLS) - reach
    ray, gate = _nearest(before, axis)
    inside = np.hypot(axis, axis[:, np.newaxis]) <= before.reach

    def mapped(values: NDArray[np.floating]) -> NDArray[np.floating]:
        return np.where(inside, values[ray, gate], np.nan)

    figure = new_figure(13.5, 4.5)
    axes = figure.subplots(1, 3)
    image = draw_rain(axes[0], mapped(rain), axis, axis)
    draw_rain(axes[1], mapped(relation.rain_rate(cleaned.sweep.dbz)), axis, axis)
    # The first step that removed or lowered a gate's rain.
    step = np.full(rain.shape, np.nan)
    for place in reversed(range(len(STEPS))):
        step[(cleaned.flags >> place & 1 > 0) & (rain > 0)] = place
    colours = [colour for colour, _ in METHODS[: len(STEPS)]]
    norm = BoundaryNorm(np.arange(len(STEPS) + 1) - 0.5, len(STEPS))
    draw_field(axes[2], mapped(step), axis, axis, ListedColormap(colours), norm)
    # Percentage of the gates with rain that each step removed or lowered.
    every = max(cleaned.counts["echo"], 1)
    shares = {name: 100 * n / every for name, n in cleaned.counts.items() if name != "echo"}
    handles = [
        Patch(color=colours[STEPS.index(name)], label=f"{name}, {share:.2g} %")
        for name, share in shares.items()
    ]
    if handles:
        axes[2].legend(handles=handles, fontsize=7, loc="lower right")
    gone = sum(share for name, share in shares.items() if name != "bright_band")
    titles = ("before", "after", f"taken out: {gone:.2g} % of the gates with echo")
    for one, title in zip(axes, titles, strict=True):
        across, up = draw_place(one, Place(radar=True), axis, axis)
        one.set_title(title, fontsize=10)
        one.set_xlabel(across, fontsize=8, color=FAINT)
        one.set_ylabel(up, fontsize=8, color=FAINT)
    add_legend(figure, image, axes[:2])
    when = before.time.astype("datetime64[s]").item()
    title = f"{station}, {when:%Y-%m-%d %H:%M} UTC, {before.elevation:.1f} degrees"
    figure.suptitle(title, fontsize=11)
    save(figure, path)


def _nearest(
    sweep: Sweep, axis: NDArray[np.floating]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return ray and gate of each cell of a map around the radar."""
    x, y = axis, axis[:, np.newaxis]
    edges = (sweep.azimuth + np.roll(sweep.azimuth, -1)) / 2
    angle = np.degrees(np.arctan2(x, y)) % 360.0
    ray = np.searchsorted(edges[:-1], angle) % sweep.azimuth.size
    # Between the last ray and north, the first ray may be nearer.
    last, first = angle - sweep.azimuth[-1], sweep.azimuth[0] + 360.0 - angle
    ray = np.where((last > 0) & (first < last), 0, ray)
    step = (sweep.range[-1] - sweep.range[0]) / max(sweep.range.size - 1, 1)
    gate = np.rint((np.hypot(x, y) - sweep.range[0]) / step).clip(0, sweep.range.size - 1)
    return ray, gate.astype(np.int64)


def plot_climate(climate: Climate, path: Path) -> None:
    """Write a PNG of the echoes' frequency by azimuth and range, and of the loss of each ray."""
    rays = len(climate.frequency)
    azimuth = (np.arange(rays) + 0.5) * 360.0 / rays
    figure = new_figure(10, 5)
    field, loss = figure.subplots(1, 2, sharey=True, width_ratios=(4, 1))
    extent = (0, climate.range[-1] / 1e3, 0, 360)
    image = field.imshow(
        100 * climate.frequency, origin="lower", aspect="auto", extent=extent, cmap="Purples",
        vmin=0, vmax=100,
    )  # fmt: skip
    for outlined, colour in ((climate.ground, "#d55e00"), (climate.blockage > 0, "#0072b2")):
        if outlined.any():
            field.contour(
                climate.range / 1e3, azimuth, outlined, levels=[0.5], colors=colour, linewidths=0.6
            )
    bar = figure.colorbar(image, ax=field, location="left", pad=0.02)
    bar.set_label("scans with echo (%), ground and blocked gates outlined", fontsize=8)
    behind = climate.blockage.max(axis=1)
    loss.step(behind, azimuth, where="mid", color="#0072b2")
    loss.set(xlim=(0, max(10.0, float(behind.max()))))
    for axes, label in ((field, "range (km)"), (loss, "loss (dB)")):
        axes.set_xlabel(label, fontsize=8, color=FAINT)
        axes.tick_params(labelsize=7)
    field.set_yticks(range(0, 361, 45), ["N", "NE", "E", "SE", "S", "SW", "W", "NW", "N"])
    field.set_ylabel("direction", fontsize=8, color=FAINT)
    figure.suptitle(f"{climate.scans} scans at {climate.elevation:.1f} degrees", fontsize=11)
    save(figure, path)
