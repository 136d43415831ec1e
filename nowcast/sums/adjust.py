"""Radar sums adjusted to gauges by the mean field bias, and also by range."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from daskdl.errors import DataError, SettingsError
from nowcast.rain.cf import history_line
from nowcast.rain.grid import Grid
from nowcast.rain.identity import path_of
from nowcast.sums.gauges import Gauges

Array = NDArray[np.float64]

METHODS = ("mean", "range")
# mm added to the sums of gauges and radar, so that light rain has little effect.
PRIOR = 1.0
# mm from which on gauge and radar show an effect of range, and how loosely its slope is bound to 0.
LEAST, HOLD = 0.5, 5.0


class Scores(NamedTuple):
    """Errors of sums at gauges that were left out of their adjustment."""

    method: str  #: ``"radar"`` as it is, ``"mean"`` or ``"range"``.
    pairs: int  #: Amounts compared.
    bias: float  #: All rain of the radar over all rain of the gauges.
    #: Root mean square and mean absolute error in mm.
    rmse: float
    mae: float


class Pairs(NamedTuple):
    """Gauges and the radar's sums in their cells, mm (time, station), NaN where either is missing.

    The range is the stations' distance from the radar in km.
    """

    gauge: Array
    radar: Array
    range_km: Array

    def without(self, station: int) -> Pairs:
        """Return the pairs of all other stations."""
        return Pairs(*(np.delete(part, station, axis=-1) for part in self))


def pairs_of(sums: xr.Dataset, gauges: Gauges, window: float) -> Pairs:
    """Return gauges and radar at the times of the sums of `nowcast.accumulate`.

    ``window`` is the length in hours of the gauges' amounts. Raises DataError if the two have no
    window, time or place in common.
    """
    where = path_of(sums)
    if "rain_sum" not in sums or window not in sums["window"].values:
        have = sums["window"].values.tolist() if "window" in sums else "none"
        raise DataError(
            f"{where}: expected sums over {window:g} h, found {have}; make them by "
            f"nowcast accumulate --over {window:g}h"
        )
    grid = Grid.from_dataset(sums, where=where)
    x, y = grid.from_degrees()(gauges.longitude, gauges.latitude)
    column = np.floor((x - grid.x0) / grid.dx + 0.5)
    row = np.floor((y - grid.y0) / grid.dy + 0.5)
    inside = (column >= 0) & (column < grid.nx) & (row >= 0) & (row < grid.ny)
    cells = np.where(inside, row, 0).astype(int), np.where(inside, column, 0).astype(int)
    times = sums["time"].values.astype("datetime64[s]")
    radar = np.stack([
        sums["rain_sum"].sel(window=window).isel(time=k).values[cells] for k in range(len(times))
    ]).astype(np.float64)  # fmt: skip
    at = np.searchsorted(gauges.time, times).clip(max=len(gauges.time) - 1)
    gauge = np.where((gauges.time[at] == times)[:, np.newaxis], gauges.amount[at], np.nan)
    both = np.isfinite(gauge) & np.isfinite(radar) & inside
    if not both.any():
        raise DataError(
            f"{where}: expected amounts of gauges in cells with a sum at its time (the end of the "
            f"window in UTC), found none of {len(gauges.names)} gauges from {gauges.time[0]} to "
            f"{gauges.time[-1]}"
        )
    return Pairs(
        np.where(both, gauge, np.nan), np.where(both, radar, np.nan), np.hypot(x, y) / 1000
    )


def factors(pairs: Pairs, method: str) -> tuple[Array, float]:
    """Return the correction of sums: a factor (time,), times exp(slope * range in km).

    The mean field bias at a time is the gauges' total rain divided by the radar's at the gauges.
    One slope with range is fitted to all times, because it comes from the beam's height: weighted
    least squares of the logarithms of gauge over radar.
    """
    gauge, radar = pairs.gauge, pairs.radar
    slope = 0.0
    if method == "range":
        wet = (gauge >= LEAST) & (radar >= LEAST)
        far = np.broadcast_to(pairs.range_km, gauge.shape)[wet] / 100
        ratio, weight = np.log(gauge[wet] / radar[wet]), np.sqrt(gauge[wet] * radar[wet])
        if weight.size:
            far = far - np.average(far, weights=weight)
            ratio = ratio - np.average(ratio, weights=weight)
            slope = float((weight * far * ratio).sum() / ((weight * far**2).sum() + HOLD)) / 100
    shaped = np.nansum(radar * np.exp(slope * pairs.range_km), axis=1)
    return (np.nansum(gauge, axis=1) + PRIOR) / (shaped + PRIOR), slope


def methods_of(sums: xr.Dataset) -> tuple[str, ...]:
    """Return the methods for sums; "range" needs one radar in its own projection."""
    projection = sums["crs"].attrs.get("grid_mapping_name")
    several = "stations " in str(sums.attrs.get("source", ""))
    return METHODS[:1] if several or projection != "azimuthal_equidistant" else METHODS


def left_out(pairs: Pairs, methods: tuple[str, ...]) -> list[Scores]:
    """Return the scores of each method at each gauge, adjusted by all the others."""
    estimates = {"radar": pairs.radar}
    for method in methods:
        estimates[method] = np.full_like(pairs.radar, np.nan)
        for station in range(pairs.gauge.shape[1]):
            factor, slope = factors(pairs.without(station), method)
            shape = np.exp(slope * pairs.range_km[station])
            estimates[method][:, station] = pairs.radar[:, station] * factor * shape
    known = np.isfinite(pairs.gauge)
    gauge = pairs.gauge[known]
    scores = []
    for method, estimate in estimates.items():
        error = estimate[known] - gauge
        bias = float(estimate[known].sum() / max(gauge.sum(), 1e-9))
        rmse, mae = float(np.sqrt(np.mean(error**2))), float(np.abs(error).mean())
        scores.append(Scores(method, gauge.size, bias, rmse, mae))
    return scores


def adjusted(sums: xr.Dataset, pairs: Pairs, method: str, window: float) -> xr.Dataset:
    """Return the adjusted sums over the gauges' window, with ``adjustment (time, y, x)``."""
    if method not in (allowed := methods_of(sums)):
        raise SettingsError(
            f"--method: expected {' or '.join(allowed)}, found {method!r}; only sums of one radar "
            "on a grid around it have a range"
        )
    factor, slope = factors(pairs, method)
    grid = Grid.from_dataset(sums)
    range_km = np.hypot(grid.x[np.newaxis], grid.y[:, np.newaxis]) / 1000
    field = factor[:, np.newaxis, np.newaxis] * np.exp(slope * range_km)
    attrs: dict[str, Any] = {"long_name": "factor that radar sums were multiplied by", "units": "1"}
    result = sums[["rain_sum", "observed_share", "crs"]].sel(window=[window])
    result["adjustment"] = (("time", "y", "x"), field.astype(np.float32), attrs)
    with_attributes = result["rain_sum"].attrs | {"comment": f"adjusted to gauges, {method}"}
    result["rain_sum"] = (result["rain_sum"] * result["adjustment"]).assign_attrs(with_attributes)
    line = history_line(f"adjusted to gauges, {method}")
    result.attrs["history"] = f"{line}\n{result.attrs.get('history', '')}".strip()
    return result
