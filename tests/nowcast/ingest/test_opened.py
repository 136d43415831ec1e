"""Opened volumes on a grid: missing and dry gates, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import nowcast
from daskdl.errors import DataError

GRID = nowcast.Grid.around(50.0, 5.0, size=(20, 20), spacing=2000.0)


def sweep(dbz: np.ndarray) -> xr.Dataset:
    """A sweep of 360 rays and 100 gates of 250 m."""
    azimuth, time = np.arange(360) + 0.5, np.full(360, np.datetime64("2020-06-01", "ns"))
    return xr.Dataset(
        {"DBZH": (("azimuth", "range"), dbz, {"units": "dBZ"})},
        {
            "azimuth": azimuth, "range": 125 + 250.0 * np.arange(100), "time": ("azimuth", time),
            "elevation": ("azimuth", np.full(360, 0.5)), "latitude": 50.0, "longitude": 5.0,
            "altitude": 100.0,
        },
    )  # fmt: skip


def test_rain_no_echo_and_missing_stay_apart():
    dbz = np.full((360, 100), 30.0)
    dbz[:180], dbz[180:270] = -32.0, np.nan  # east, south-west; rain in the north-west
    root = xr.Dataset(coords={"latitude": 50.0, "longitude": 5.0, "altitude": 100.0})
    tree = xr.DataTree.from_dict({"/": root, "/sweep_0": sweep(dbz)})
    for volume in (tree, sweep(dbz)):
        rain = nowcast.grid(volume, GRID)["rain_rate"].values[0]
        assert rain[10, 14] == 0
        assert np.isnan(rain[6, 6])
        np.testing.assert_allclose(rain[13, 6], (1000 / 200) ** (1 / 1.6), rtol=1e-4)
    with pytest.raises(DataError, match="expected a sweep with reflectivity"):
        nowcast.grid(sweep(dbz).drop_vars("DBZH"), GRID)
    far = nowcast.Grid.around(10.0, 5.0, size=(4, 4), spacing=1000.0)
    with pytest.raises(DataError, match="reaches no cell"):
        nowcast.grid(sweep(dbz), far)
