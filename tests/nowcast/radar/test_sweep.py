"""A sweep from xradar's Dataset: rays in order, kinds of gates, clutter."""

from __future__ import annotations

import numpy as np
import xarray as xr

from nowcast.radar.sweep import from_xradar, site_of


def dataset() -> xr.Dataset:
    start = np.datetime64("2020-01-01T00:00:00", "ns")
    return xr.Dataset(
        {
            "DBZH": (("azimuth", "range"), [[1.0, -33.0], [3.0, 99.0], [5.0, 6.0]]),
            "RHOHV": (("azimuth", "range"), [[0.9, 0.5], [0.2, 0.5], [-33.0, 0.99]]),
            "sweep_fixed_angle": 0.5,
        },
        coords={
            "azimuth": [240.0, 0.0, 120.0],
            "range": [500.0, 1500.0],
            "time": ("azimuth", [start + 9, start + 3, np.datetime64("NaT")]),
            "elevation": ("azimuth", [0.4, 0.5, 0.6]),
        },
    )


def classify(moment):
    return moment.values == -33, moment.values == 99


def test_rays_are_sorted_and_gates_told_apart():
    sweep = from_xradar(dataset(), None, classify)
    assert sweep.azimuth.tolist() == [0.0, 120.0, 240.0]
    assert sweep.dbz.dtype == np.float32
    np.testing.assert_array_equal(sweep.dbz, [[3.0, np.nan], [5.0, 6.0], [1.0, -np.inf]])
    np.testing.assert_array_equal(
        sweep.rhohv, np.array([[0.2, 0.5], [np.nan, 0.99], [0.9, 0.5]], np.float32)
    )
    assert sweep.time == np.datetime64("2020-01-01T00:00:00")


def test_low_correlation_is_no_rain_and_unmeasured_stays():
    sweep = from_xradar(dataset(), None, classify).without_clutter(0.8)
    np.testing.assert_array_equal(sweep.dbz, [[-np.inf, np.nan], [5.0, 6.0], [1.0, -np.inf]])


def test_without_correlation_nothing_changes():
    sweep = from_xradar(dataset().drop_vars("RHOHV"), None, classify)
    assert sweep.without_clutter(0.8) is sweep


def test_a_site_of_zeros_is_unknown():
    known = dataset().assign_coords(latitude=51.0, longitude=5.0, altitude=np.nan)
    assert str(site_of(known)) == "51.00000,5.00000,0"
    assert site_of(known.assign_coords(latitude=0, longitude=0)) is None
    assert site_of(dataset()) is None
