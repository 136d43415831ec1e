"""Scores by lead time and by scale, one line per forecaster."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nowcast.plot.figure import FAINT, METHODS, named_simulated, new_figure, save
from nowcast.rain.identity import is_simulated

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

#: Largest number of thresholds shown; rarer ones are left out.
COLUMNS = 3
#: Letters of the title an inch of the picture's width.
LETTERS = 10.5
RATE = "mm h$^{-1}$"


def plot_scores(scores: xr.Dataset, path: Path) -> None:
    """Write a picture of verification scores as PNG.

    Each threshold has a column: CSI by lead time above, FSS by scale (at half the lead time) below.
    The last column has MAE and frequency bias. `nowcast.verification.verify` has an example.

    Parameters
    ----------
    scores : Dataset
        From :func:`nowcast.verification.verify`: ``csi`` and ``bias`` (forecaster, lead_time,
        threshold), ``mae`` (forecaster, lead_time), ``fss`` (forecaster, lead_time, threshold,
        scale).
    path : path
    """
    minutes = scores["lead_time"].values / np.timedelta64(60, "s")
    thresholds = _with_events(scores)[:COLUMNS]
    middle = (len(minutes) - 1) // 2
    figure = new_figure(2.9 * (len(thresholds) + 1) + 0.2, 6.2)
    upper, lower = figure.subplots(2, len(thresholds) + 1)
    for axes, threshold in zip(upper, thresholds, strict=False):
        _by_lead(axes, minutes, scores["csi"].sel(threshold=threshold))
        pad = 16 if "events" in scores else 6
        axes.set_title(f"CSI, {threshold:g} {RATE} or more", fontsize=10, pad=pad)
        axes.set_ylim(0, 1)
        _remark(axes, scores, threshold)
    for axes, threshold in zip(lower, thresholds, strict=False):
        fss = scores["fss"].sel(threshold=threshold).isel(lead_time=middle)
        _by_scale(axes, fss, window_km(scores))
        axes.set_title(f"FSS at +{minutes[middle]:g} min, {threshold:g} {RATE}", fontsize=10)
        axes.set_ylim(0, 1)
    _by_lead(upper[-1], minutes, scores["mae"])
    upper[-1].set_title(f"mean absolute error ({RATE})", fontsize=10)
    upper[-1].set_ylim(0, None)
    common = min(thresholds, key=lambda value: abs(np.log(value)))
    _by_lead(lower[-1], minutes, scores["bias"].sel(threshold=common))
    lower[-1].axhline(1, color=FAINT, linewidth=0.8, zorder=0)
    lower[-1].set_title(f"frequency bias, {common:g} {RATE} or more", fontsize=10)
    lower[-1].set_ylim(0, max(2.0, lower[-1].get_ylim()[1]))
    handles, labels = upper[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    letters = int(LETTERS * figure.get_figwidth())
    figure.suptitle(textwrap.fill(_title(scores), letters), fontsize=12)
    save(figure, path)


def _title(scores: xr.Dataset) -> str:
    """Return the title: what was scored, how often and when, and whether it is simulated."""
    source = str(scores.attrs.get("source", "")).strip() or "Forecasts of rain"
    source = named_simulated(source, is_simulated(scores))
    cases = int(scores.attrs["n_cases"])
    parts = [source, f"{cases} forecast" + ("s" if cases != 1 else "")]
    first, last = (
        str(scores.attrs.get(f"{end}_start", ""))[:16].replace("T", " ")
        for end in ("first", "last")
    )
    if first and last:
        # The day once when it is the same.
        last = last.removeprefix(first[:11])
        parts.append(f"made from {first} to {last} UTC")
    return ", ".join(parts)


def _with_events(scores: xr.Dataset) -> list[float]:
    """Return the thresholds with observed or forecast events, increasing."""
    there = scores["csi"].notnull().any(("forecaster", "lead_time")).values
    thresholds = scores["threshold"].values
    chosen = thresholds[there] if there.any() else thresholds[:1]
    return [float(threshold) for threshold in np.sort(chosen)]


def _remark(axes: Axes, scores: xr.Dataset, threshold: float) -> None:
    """Write the number of observed pixels behind a threshold's scores, if it is known."""
    if "events" not in scores:
        return
    events = int(scores["events"].sel(threshold=threshold).sum())
    axes.text(
        0.5, 1.02, f"{events:,} observed pixels".replace(",", "\N{THIN SPACE}"),
        transform=axes.transAxes, ha="center", va="bottom", fontsize=7.5, color=FAINT,
    )  # fmt: skip


def _by_lead(axes: Axes, minutes: NDArray[np.float64], values: xr.DataArray) -> None:
    lines(axes, minutes, values)
    axes.set_xlabel("lead time (min)", fontsize=8.5)
    axes.set_xlim(0, 1.03 * minutes[-1])
    axes.locator_params(axis="x", nbins=6, steps=[1, 1.5, 2, 3, 6, 10])


def window_km(scores: xr.Dataset) -> NDArray[np.float64]:
    """Return the sides of the FSS windows: whole pixels of the (first) grid, where it is known."""
    pixels = scores.attrs.get("fss_window_pixels", scores["scale"].values)
    return np.asarray(pixels) * float(scores.attrs.get("grid_spacing_km", 1))


def _by_scale(axes: Axes, values: xr.DataArray, scales: NDArray[np.float64]) -> None:
    from matplotlib.ticker import NullLocator

    lines(axes, scales, values)
    # Scales are chosen in ratios, hence the logarithm; ticks are at the ones there are.
    axes.set_xscale("log")
    axes.set_xticks(scales, [f"{scale:g}" for scale in scales])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("scale (km)", fontsize=8.5)


def lines(axes: Axes, x: NDArray[Any], values: xr.DataArray) -> None:
    """Draw one line per forecaster; the first is on top, as the subject of the picture."""
    for number, forecaster in enumerate(values["forecaster"].values):
        colour, marker = METHODS[number % len(METHODS)]
        axes.plot(
            x, values.isel(forecaster=number).values, color=colour, marker=marker,
            markersize=4.5 if number == 0 else 3.5, linewidth=2.0 if number == 0 else 1.4,
            zorder=10 - number, label=str(forecaster),
        )  # fmt: skip
    style(axes)


def style(axes: Axes) -> None:
    """Give axes of curves their looks: small grey ticks and a faint grid."""
    axes.tick_params(labelsize=8, length=2.5, color=FAINT, labelcolor=FAINT)
    axes.grid(color="#e6e6e6", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set(color=FAINT, linewidth=0.6)
