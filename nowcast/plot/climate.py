"""A picture of the climate of a radar's echoes: their frequency, and loss behind obstacles."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from nowcast.plot.figure import FAINT, new_figure, save
from nowcast.quality.climate import Climate


def plot_climate(climate: Climate, path: Path) -> None:
    """Write frequency by azimuth and range, with ground outlined, beside the loss of each ray."""
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
