"""A sweep from xradar's Dataset: the order of rays and the kinds of gates; sites."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from daskdl.errors import SettingsError
from nowcast.radar.header import Site
from nowcast.radar.polar.cuts import join_moments, lowest_cuts, usable_sweeps
from nowcast.radar.polar.sweep import Sweep, from_xradar, site_of
from nowcast.radar.reader import read_header
from tests.nowcast.radar.odim_file import write_sweep


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


def test_rays_are_sorted_and_gates_classified():
    sweep = from_xradar(dataset(), None, classify)
    assert sweep.azimuth.tolist() == [0.0, 120.0, 240.0]
    assert sweep.dbz.dtype == np.float32
    np.testing.assert_array_equal(sweep.dbz, [[3.0, np.nan], [5.0, 6.0], [1.0, -np.inf]])
    np.testing.assert_array_equal(
        sweep.rhohv, np.array([[0.2, 0.5], [np.nan, 0.99], [0.9, 0.5]], np.float32)
    )
    assert sweep.time == np.datetime64("2020-01-01T00:00:00")


def test_a_site_of_zeros_is_unknown():
    known = dataset().assign_coords(latitude=51.0, longitude=5.0, altitude=np.nan)
    assert str(site_of(known)) == "51.00000,5.00000,0"
    assert site_of(known.assign_coords(latitude=0, longitude=0)) is None
    assert site_of(dataset()) is None


def sweep(elevation=0.5, gates=10, second=0, dbz=True, rhohv=False) -> Sweep:
    values = np.zeros((36, gates), np.float32)
    return Sweep(
        elevation=elevation,
        azimuth=np.arange(36) * 10.0,
        range=500.0 + 1000.0 * np.arange(gates),
        time=np.datetime64("2020-01-01T00:00:00") + second,
        site=None,
        dbz=values if dbz else None,
        rhohv=values if rhohv else None,
    )


@given(st.lists(st.floats(0, 90), max_size=20), st.integers(1, 5))
def test_cuts_are_lowest_first_and_disjoint(elevations, count):
    cuts = lowest_cuts(elevations, count)
    assert len(cuts) <= count
    flat = [index for cut in cuts for index in cut]
    assert len(flat) == len(set(flat))
    lowest = [min(elevations[index] for index in cut) for cut in cuts]
    assert lowest == sorted(lowest)
    if any(elevation <= 45 for elevation in elevations):
        assert lowest[0] == min(elevations)


def test_the_longest_range_of_a_split_cut_is_used_or_else_the_first():
    sweeps = [sweep(0.48, 8), sweep(0.5, 18, 20), sweep(0.48, 18, 10), sweep(1.5)]
    assert [s.time for s in usable_sweeps(sweeps, 1)] == [sweeps[2].time]
    assert len(usable_sweeps(sweeps, 2)) == 2


def test_sweeps_without_reflectivity_are_skipped():
    sweeps = [sweep(0.4, dbz=False), sweep(0.5), sweep(1.5)]
    assert usable_sweeps(sweeps, 1) == [sweeps[1]]


def test_moments_of_one_turn_are_joined_and_others_are_not():
    joined = join_moments(
        [
            sweep(dbz=False, rhohv=True),
            sweep(second=3),
            sweep(second=120),
            sweep(gates=5),
            sweep(1.5),
        ]
    )
    assert [(s.dbz is not None, s.rhohv is not None) for s in joined] == [
        (True, True),
        (True, False),
        (True, False),
        (True, False),
    ]


def test_headers_pickle(tmp_path):
    header = read_header(write_sweep(tmp_path / "a.h5"))
    assert pickle.loads(pickle.dumps(header)) == header


def test_text_with_and_without_altitude():
    assert Site.parse("30.3367, -89.8256") == Site(30.3367, -89.8256, 0.0)
    assert Site.parse("30,-89,7") == Site(30, -89, 7)


@pytest.mark.parametrize("text", ["", "30", "30,x", "1,2,3,4", "91,0"])
def test_other_text_is_refused(text):
    with pytest.raises(SettingsError, match="site: expected"):
        Site.parse(text)


def test_null_island_and_nan_are_unknown():
    assert Site.known(0, 0, 5) is None
    assert Site.known(float("nan"), 1, 5) is None
    assert Site.known(0, 10, float("nan")) == Site(0, 10, 0)
