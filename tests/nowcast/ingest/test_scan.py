"""Scans: which files belong together, and which time they get."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nowcast.ingest.scan import group_scans, nearest
from nowcast.radar.header import Format, Header

MINUTE = np.timedelta64(1, "m")


def header(time: str, name: str = "", format: Format = Format.ODIM, **changes) -> Header:
    return Header(name or time, format, "radar", (np.datetime64(f"2020-01-01T{time}"),), **changes)


def times(scans) -> list[str]:
    return [str(scan.time)[11:] for scan in scans]


@given(st.integers(-(10**9), 4 * 10**9), st.sampled_from([1, 5, 10, 15]))
def test_the_nearest_multiple_is_a_multiple_and_near(second, minutes):
    time = np.datetime64("1970-01-01", "s") + second
    rounded = nearest(time, minutes * MINUTE)
    assert (rounded.astype(int) % (60 * minutes)) == 0
    assert 2 * abs(rounded - time) <= minutes * MINUTE


def test_moments_of_one_time_are_one_scan():
    scans, repeated = group_scans(
        [header("13:00:05", "dbzh"), header("13:05:04", "x"), header("13:00:05", "rhohv")]
    )
    assert times(scans) == ["13:00:00", "13:05:00"]
    assert scans[0].name == "dbzh, rhohv"
    assert repeated == []


def test_single_sweeps_belong_to_the_interval_in_which_they_start():
    starts = ["06:50:00", "06:50:44", "06:53:44", "06:54:58", "06:55:44", "06:58:45"]
    scans, _ = group_scans([header(start, single_sweep=True) for start in starts])
    assert times(scans) == ["06:50:00", "06:55:00"]
    assert [len(scan.headers) for scan in scans] == [3, 3]


def test_a_step_snaps_times_and_the_closest_scan_wins():
    volumes = [header(time, format=Format.NEXRAD) for time in ("15:00:25", "15:03:40", "15:04:40")]
    scans, repeated = group_scans(volumes, np.timedelta64(5, "m"))
    assert times(scans) == ["15:00:00", "15:05:00"]
    assert scans[1].name == "15:04:40"
    assert [scan.name for scan in repeated] == ["15:03:40"]


def test_each_time_of_a_composite_is_a_scan():
    both = Header(
        "maps.nc", Format.CFNETCDF, "x", tuple(np.array(["2020-01-02", "2020-01-01"], "M8[s]"))
    )
    scans, _ = group_scans([both])
    assert [(str(scan.time)[:10], scan.index) for scan in scans] == [
        ("2020-01-01", 1),
        ("2020-01-02", 0),
    ]


def test_times_are_sorted_and_unique():
    volumes = [header(f"1{i}:00:00", format=Format.KNMI) for i in (5, 3, 5, 4)]
    scans, repeated = group_scans(volumes)
    assert times(scans) == ["13:00:00", "14:00:00", "15:00:00"]
    assert len(repeated) == 1
