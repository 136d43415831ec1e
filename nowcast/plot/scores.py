"""Scores by lead time and by scale, one line a method."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nowcast.plot.figure import new_figure, save
from nowcast.plot.panels import is_simulated

if TYPE_CHECKING:
    import xarray as xr

# Okabe and Ito's colours, told apart by everybody; a marker of its own tells them apart in grey.
_STYLES = (
    ("#0072b2", "o"), ("#7f7f7f", "s"), ("#d55e00", "^"), ("#009e73", "D"), ("#cc79a7", "v"),
)  # fmt: skip


def plot_scores(scores: xr.Dataset, path: Path) -> None:
    """Write a picture of verification scores as PNG.

    Parameters
    ----------
    scores : Dataset
        From :func:`nowcast.verification.verify`.
    path : path
    """
    minutes = scores["lead_time"].values / np.timedelta64(1, "m")
    thresholds = _with_events(scores)[:3]
    figure = new_figure(3.4 * (len(thresholds) + 1), 5.8)
    upper, lower = figure.subplots(2, len(thresholds) + 1)
    for axes, threshold in zip(upper, thresholds, strict=False):
        _lines(axes, minutes, scores["csi"].sel(threshold=threshold), scores)
        axes.set(title=f"CSI, at least {threshold:g} mm h$^{{-1}}$", ylim=(0, 1))
    _lines(upper[-1], minutes, scores["mae"], scores)
    upper[-1].set(title="MAE (mm h$^{-1}$)", ylim=(0, None))
    middle = len(minutes) // 2
    for axes, threshold in zip(lower, thresholds, strict=False):
        fss = scores["fss"].sel(threshold=threshold).isel(lead_time=middle)
        _lines(axes, scores["scale"].values, fss, scores)
        axes.set(title=f"FSS at +{minutes[middle]:g} min, {threshold:g} mm h$^{{-1}}$", ylim=(0, 1))
        axes.set_xlabel("scale (km)", fontsize=8)
    near_one = min(thresholds, key=lambda t: abs(np.log(t)))
    _lines(lower[-1], minutes, scores["bias"].sel(threshold=near_one), scores)
    lower[-1].axhline(1, color="#bbbbbb", linewidth=0.8, zorder=0)
    lower[-1].set(title=f"frequency bias, {near_one:g} mm h$^{{-1}}$", ylim=(0, None))
    for axes in (*upper, lower[-1]):
        axes.set_xlabel("lead time (min)", fontsize=8)
    handles, labels = upper[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    prefix = "Simulated data: " if is_simulated(scores) else ""
    source = scores.attrs.get("source", "")
    figure.suptitle(
        f"{prefix}{source}, {scores.attrs['n_cases']} forecasts, "
        f"{scores.attrs.get('first_start', '')} to {scores.attrs.get('last_start', '')} UTC",
        fontsize=10,
    )
    save(figure, path)


def _with_events(scores: xr.Dataset) -> list[float]:
    """Return the thresholds that something was observed or forecast at, low ones first."""
    there = scores["csi"].notnull().any(("method", "lead_time")).values
    thresholds = scores["threshold"].values
    chosen = thresholds[there] if there.any() else thresholds[:1]
    return [float(threshold) for threshold in chosen]


def _lines(axes: Any, x: np.ndarray[Any, Any], values: xr.DataArray, scores: xr.Dataset) -> None:
    for number, method in enumerate(scores["method"].values):
        colour, marker = _STYLES[number % len(_STYLES)]
        axes.plot(
            x,
            values.sel({"method": method}).values,
            color=colour,
            marker=marker,
            markersize=4,
            linewidth=1.6,
            label=str(method),
        )
    axes.tick_params(labelsize=8)
    axes.title.set_fontsize(9)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
