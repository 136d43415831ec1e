"""Reliability, rank histograms and spectra: whether probabilities mean what they say."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from nowcast.plot.figure import FAINT, METHODS, new_figure, save
from nowcast.plot.scores import lines, style

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

#: Most thresholds whose reliability is shown, and least pixels for a point of its curve.
COLUMNS, FEWEST = 3, 100


def plot_probabilistic(scores: xr.Dataset, path: Path) -> None:
    """Write a picture of reliability, rank histograms and spectra as PNG.

    It has one column per threshold with reliability at the last lead time, if a forecaster gives
    probabilities; one with the rank histogram, if one gives members; and one with the power of the
    rain by wavelength, relative to the observed power.

    - ``scores``: from :func:`nowcast.verification.verify`.
    """
    last = scores.isel(lead_time=-1)
    there = last["forecasts"].notnull().any(("forecaster", "probability_bin"))
    thresholds = last["threshold"].values[there.values][:COLUMNS]
    ranks = "rank_histogram" in scores
    columns = len(thresholds) + ranks + 1
    figure = new_figure(max(5.6, 2.9 * columns + 0.2), 3.4)
    axes = iter(figure.subplots(1, columns, squeeze=False)[0])
    for threshold in thresholds:
        _reliability(next(axes), last.sel(threshold=threshold), float(threshold))
    if ranks:
        _ranks(next(axes), last)
    spectrum = next(axes)
    _spectrum(spectrum, last)
    handles, labels = spectrum.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    minutes = float(last["lead_time"].values / np.timedelta64(60, "s"))
    figure.suptitle(f"At +{minutes:g} min", fontsize=12)
    save(figure, path)


def _reliability(axes: Axes, at: xr.Dataset, threshold: float) -> None:
    """Draw observed frequency by forecast probability; on the diagonal they agree."""
    axes.plot([0, 1], [0, 1], color=FAINT, linewidth=0.8, zorder=0)
    for number, _ in enumerate(at["forecaster"].values):
        here = at.isel(forecaster=number)
        sure = here["forecasts"].values >= FEWEST
        if sure.any():
            colour, marker = METHODS[number % len(METHODS)]
            axes.plot(
                here["forecast_probability"].values[sure], here["observed_frequency"].values[sure],
                color=colour, marker=marker, markersize=3.5, linewidth=1.4, zorder=10 - number,
            )  # fmt: skip
    axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    axes.set_title(f"reliability, {threshold:g} mm h$^{{-1}}$", fontsize=10)
    axes.set_xlabel("forecast probability", fontsize=8.5)
    axes.set_ylabel("observed frequency", fontsize=8.5)
    style(axes)


def _ranks(axes: Axes, at: xr.Dataset) -> None:
    """Draw the rank histogram: counts by the number of members below the observation."""
    ranks = at["rank_histogram"]
    count = ranks.sizes["rank"]
    for number, _ in enumerate(at["forecaster"].values):
        values = ranks.isel(forecaster=number).values
        if np.isfinite(values).any():
            axes.step(
                np.arange(count), values * count, where="mid", linewidth=1.4,
                color=METHODS[number % len(METHODS)][0], zorder=10 - number,
            )  # fmt: skip
    axes.axhline(1, color=FAINT, linewidth=0.8, zorder=0)
    axes.set_ylim(0, None)
    axes.set_title("rank histogram", fontsize=10)
    axes.set_xlabel("members below the observation", fontsize=8.5)
    axes.set_ylabel("frequency, 1 when flat", fontsize=8.5)
    style(axes)


def _spectrum(axes: Axes, at: xr.Dataset) -> None:
    """Draw power by wavelength relative to the observed; below 1 a forecast is blurred."""
    lines(axes, at["wavelength"].values, at["power_ratio"])
    axes.axhline(1, color=FAINT, linewidth=0.8, zorder=0)
    axes.set_xscale("log")
    axes.set_ylim(0, min(3.0, max(1.3, axes.get_ylim()[1])))
    axes.set_title("power, forecast / observed", fontsize=10)
    axes.set_xlabel("wavelength (km)", fontsize=8.5)
