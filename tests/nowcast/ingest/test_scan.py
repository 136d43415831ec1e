"""Scans: files are found and grouped by time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl.errors import DataError
from nowcast.ingest.report import IngestReport
from nowcast.ingest.scan import group_scans, nearest
from nowcast.ingest.settings import IngestSettings
from nowcast.ingest.sources import find_files, of_one_radar, target_grid, typical
from nowcast.radar.header import Format, Header, Site
from nowcast.rain.grid import Grid

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


@given(
    st.sampled_from([1, 3, 12]).flatmap(
        lambda n: st.lists(st.tuples(st.integers(0, 600), st.booleans()), min_size=n, max_size=24)
    ),
    st.sampled_from([Format.ODIM, Format.NEXRAD, Format.KNMI]),
    st.integers(-12, 11),
    st.sampled_from([None, MINUTE, 5 * MINUTE]),
)
def test_each_file_is_in_a_scan_repeated_or_refused_and_none_vanishes(
    files, format, stranger, step
):
    """This holds for any volumes in a folder, however close in time, one maybe of another radar.

    With fewer than ten files a stranger is an error; with more it is skipped and reported.
    """
    headers = [
        replace(header(f"13:{second // 60:02d}:{second % 60:02d}", str(i), format),
                station="b" if i == stranger else "a", single_sweep=single and format.polar)
        for i, (second, single) in enumerate(files)
    ]  # fmt: skip
    report = IngestReport("rain.zarr")
    try:
        accepted = of_one_radar(headers, report)
    except DataError:
        assert len({(one.format, one.station) for one in headers}) > 1
        return
    scans, repeated = group_scans(accepted, step)
    refused = [name for name, _ in report.failed]
    assert sorted(
        [path for scan in [*scans, *repeated] for path in scan.paths] + refused
    ) == sorted(one.path for one in headers)
    assert len({scan.time for scan in scans}) == len(scans)


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


HERE, THERE = Site(51.0, 5.0, 100.0), Site(21.0, 5.0, 100.0)


def header_series(name: str, station: str = "06475", site: Site | None = HERE) -> Header:
    return replace(header("00:00", name), station=station, site=site)


def test_the_most_frequent_known_site_is_used():
    sites = {"a": None, "b": THERE, "c": HERE, "d": HERE}
    files = [header_series(name, site=site) for name, site in sites.items()]
    assert typical(files).path == "c"
    assert typical(files[:2]).path == "b"
    assert typical(files[:1]).path == "a"
    with pytest.raises(DataError, match="give it with --site"):
        target_grid(files[0], IngestSettings())
    grid = target_grid(typical(files), IngestSettings.of(size=8))
    assert grid.matches(Grid.around(51.0, 5.0, size=(8, 8), spacing=1000.0))


def test_few_files_of_another_radar_are_skipped_and_many_are_refused():
    files = [header_series(str(number)) for number in range(18)]
    files += [header_series("x", "1"), header_series("y", "2")]
    report = IngestReport("rain.zarr")
    assert of_one_radar(files, report) == files[:18]
    assert [name for name, _ in report.failed] == ["x", "y"]
    with pytest.raises(DataError, match=r"found 3: 2 .ODIM_H5, y., 1 .ODIM_H5, x"):
        of_one_radar(files[1:], report)


@pytest.fixture
def folder(tmp_path):
    for name in ("b.h5", "a.h5", "below/c.h5", ".hidden/d.h5", ".e.h5", "rain.zarr/zarr.json"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return tmp_path


def test_a_folder_gives_all_files_but_hidden_ones_and_stores(folder):
    files = find_files([folder])
    assert [path.name for path in files.found] == ["a.h5", "b.h5", "c.h5"]
    assert files.named == []
    assert files.size() == len("a.h5" + "b.h5" + "below/c.h5")


def test_files_and_patterns_are_named_and_each_comes_once(folder):
    files = find_files([folder / "b.h5", str(folder / "*.h5"), str(folder / "**/c.*"), folder])
    assert [path.name for path in files.named] == ["b.h5", "a.h5", "c.h5"]
    assert len(files) == 3


@pytest.mark.parametrize("name", ["x.h5", "*.nc"])
def test_missing_paths_are_named(folder, name):
    with pytest.raises(DataError, match="found nothing there"):
        find_files([folder / name])


def test_an_empty_name_is_not_the_current_folder():
    with pytest.raises(DataError, match="found an empty name"):
        find_files([""])
