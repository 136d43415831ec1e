"""Rain at another time step and grid spacing, computed chunk by chunk when used."""

from __future__ import annotations

import math

import numpy as np
import xarray as xr

from daskdl.errors import DataError

#: Spacings that differ by less than this fraction are equal.
SAME = 0.02


def resampled(rain: xr.DataArray, step: np.timedelta64, spacing: float, name: str) -> xr.DataArray:
    """Return rain at another grid spacing and time step; the same object if both fit already.

    Cells are averaged in whole blocks as far as possible; the rest is interpolated linearly. Both
    use rain rates, never decibels. A block with a missing cell is missing.

    - ``rain`` (time, y, x): rain rate in mm h-1 with coordinates in m, lazy or not.
    - ``step``: the wanted step; a DataError unless leaving out frames gives it.
    - ``spacing``: the wanted spacing, in m.
    - ``name``: name of the data, for messages.
    """
    rain = _every(rain, step, name)
    have = abs(float(rain["x"].values[-1] - rain["x"].values[0])) / (rain.sizes["x"] - 1)
    factor = spacing / have
    if abs(factor - 1) <= SAME:
        return rain
    nearest = max(1, round(factor))
    blocks = nearest if abs(factor / nearest - 1) <= SAME else max(1, math.floor(factor))
    if blocks > 1:
        if min(rain.sizes["y"], rain.sizes["x"]) < 2 * blocks:
            raise DataError(
                f"{name}: expected at least {2 * blocks} cells along y and x for a spacing of "
                f"{spacing:g} m, found {rain.sizes['y']} x {rain.sizes['x']} of {have:g} m; "
                "ingest with a larger --size"
            )
        rain = rain.coarsen(y=blocks, x=blocks, boundary="trim").reduce(np.mean)
    if abs(factor / blocks - 1) <= SAME:
        return rain
    wanted = {
        axis: np.arange(rain[axis].values[0], rain[axis].values[-1] + 1e-6 * spacing, spacing)
        for axis in ("y", "x")
    }
    drop = [c for c in rain.coords if c not in ("time", "y", "x")]
    return rain.drop_vars(drop).interp(wanted).astype(np.float32)


def _every(rain: xr.DataArray, step: np.timedelta64, name: str) -> xr.DataArray:
    """Keep the frames of a longer step, at the hour and its parts."""
    time = rain["time"].values.astype("datetime64[s]").astype(np.int64)
    values, counts = np.unique(np.diff(time), return_counts=True)
    have = int(values[np.argmax(counts)])
    want = int(step / np.timedelta64(1, "s"))
    if want == have:
        return rain
    if want % have:
        raise DataError(
            f"{name}: expected frames in a step that divides {want / 60:g} min, found "
            f"{have / 60:g} min; choose a common step with --set step_minutes=MINUTES"
        )
    # The most frequent phase, because scans need not start on the hour.
    phases, often = np.unique(time % want, return_counts=True)
    return rain.isel(time=np.flatnonzero(time % want == phases[np.argmax(often)]))
