"""GRIB2 rain rates: MRMS's as eccodes reads it point by point, and messages that tests write."""

from __future__ import annotations

import struct
import subprocess
import sys

import numpy as np
import pytest

from daskdl.errors import DataError, MissingExtraError
from nowcast.radar.header import Format
from nowcast.radar.maps import grib
from nowcast.radar.reader import read_header, read_rain
from nowcast.rain.rainrate import ZRRelation
from tests.nowcast.radar.composite_files import rain, write_grib

pytest.importorskip("pyproj")  # before eccodes, see grib.load_eccodes
eccodes = pytest.importorskip("eccodes")
MRMS = "mrms/PrecipRate_00.00_20190610-000200.grib2"


@pytest.mark.long
def test_mrms_is_as_eccodes_reads_it_at_points(radar_dir):
    header = read_header(radar_dir / MRMS)
    assert header.format is Format.GRIB
    assert header.station == "MRMS"
    assert header.times == (np.datetime64("2019-06-10T00:02"),)
    grid = header.grid
    assert grid.shape == (3500, 7000)
    rain_rate = read_rain(header, 0, ZRRelation())
    assert np.nanmax(rain_rate) == pytest.approx(149.8, abs=0.01)
    latitude, longitude = (
        (grid.y0 + grid.dy * np.arange(3500)) / grid.dy * 0.01,
        -94.995 - 35.0 + 0.01 * np.arange(7000),
    )
    random = np.random.default_rng(0)
    wet = np.argwhere(rain_rate > 1)
    cells = [*wet[random.integers(0, len(wet), 6)], (1, 1), (3498, 6998), (1700, 3000)]
    with (radar_dir / MRMS).open("rb") as file:
        message = eccodes.codes_grib_new_from_file(file)
        for row, column in cells:
            (nearest,) = eccodes.codes_grib_find_nearest(
                message, latitude[row], longitude[column] % 360
            )
            assert nearest.distance < 0.1  # km
            value = rain_rate[row, column]
            assert nearest.value == pytest.approx(-3.0 if np.isnan(value) else value, abs=1e-4)
        eccodes.codes_release(message)


def test_each_message_is_a_map(tmp_path):
    header = read_header(write_grib(tmp_path / "a.grib2", count=3))
    assert [str(time)[11:16] for time in header.times] == ["12:00", "12:02", "12:04"]
    np.testing.assert_allclose(read_rain(header, 2, ZRRelation()), rain(), atol=0.051)
    latitude, longitude = header.grid.latitude_longitude()
    assert latitude[0, 0] == pytest.approx(45.0)
    assert latitude[-1, 0] == pytest.approx(45.0 + 0.5 * 23)
    assert longitude[0, 0] == pytest.approx(-100.0)
    assert longitude[0, -1] == pytest.approx(-100.0 + 0.5 * 19)


def test_without_eccodes_the_extra_is_named(tmp_path, monkeypatch):
    path = write_grib(tmp_path / "a.grib2", count=1)
    monkeypatch.setitem(sys.modules, "eccodes", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'daskdl\[grib\]'"):
        read_header(path)


def test_pyproj_works_after_eccodes_was_loaded():
    program = (
        "import numpy, nowcast.radar.maps.grib as grib;"
        "grib.load_eccodes().codes_get_api_version();"
        "import pyproj; print(pyproj.Proj('+proj=laea +lat_0=52')(0, 52))"
    )
    command = [sys.executable, "-W", "error", "-c", program]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout.strip()) == (0, "(0.0, 0.0)"), run.stderr[-300:]


def test_reflectivity_of_mrms_has_codes_for_no_echo_and_no_coverage(tmp_path):
    keys = {"parameterCategory": 11, "parameterNumber": 0}
    header = read_header(write_grib(tmp_path / "a.grib2", count=1, gap=-999.0, **keys))
    assert (header.reflectivity, header.accumulation) == (True, None)
    values = grib.read_values(tmp_path / "a.grib2", header, 0)
    np.testing.assert_array_equal(np.isnan(values), np.isnan(rain()))
    assert values[6, 5] == pytest.approx(12.0, abs=0.06)
    header = read_header(write_grib(tmp_path / "b.grib2", count=1, gap=-99.0, **keys))
    values = grib.read_values(tmp_path / "b.grib2", header, 0)
    np.testing.assert_array_equal(np.isneginf(values), np.isnan(rain()))


WMO = {"discipline": 0, "centre": 7, "parameterCategory": 1}
HOUR = {"productDefinitionTemplateNumber": 8, "stepType": "accum", "stepRange": "0-1"}


def test_an_amount_over_a_stated_interval(tmp_path):
    keys = WMO | {"parameterNumber": 8} | HOUR
    header = read_header(
        write_grib(tmp_path / "a.grib2", count=1, typeOfGeneratingProcess=0, **keys)
    )
    assert header.accumulation == np.timedelta64(1, "h")
    assert header.times == (np.datetime64("2024-06-01T13:00"),)


def write_rate(path, values, keys, sample="regular_ll_sfc_grib2"):
    """Write a message of WMO's rain rate; return the latitudes and longitudes of its points."""
    message = eccodes.codes_grib_new_from_samples(sample)
    for key, value in (keys | WMO | {"parameterNumber": 7}).items():
        eccodes.codes_set(message, key, value)
    eccodes.codes_set_values(message, values / 3600)  # kg m-2 s-1 of mm h-1
    with path.open("wb") as file:
        eccodes.codes_write(message, file)
    return [eccodes.codes_get_array(message, name) for name in ("latitudes", "longitudes")]


@pytest.mark.parametrize("kind", ["polar_stereographic", "lambert"])
@pytest.mark.parametrize("upwards", [0, 1])
def test_grids_in_metres_lie_where_their_points_are(tmp_path, kind, upwards):
    keys = {
        "gridType": kind, "Nx": 30, "Ny": 20, "DxInMetres": 4763, "DyInMetres": 4763,
        "latitudeOfFirstGridPointInDegrees": 23.117, "longitudeOfFirstGridPointInDegrees": 240.98,
        "LaDInDegrees": 60.0, "jScansPositively": upwards, "shapeOfTheEarth": 6,
    }  # fmt: skip
    if kind == "lambert":
        keys |= {"Latin1InDegrees": 38.5, "Latin2InDegrees": 38.5, "LoVInDegrees": 262.5}
        keys["LaDInDegrees"] = 38.5
    else:
        keys["orientationOfTheGridInDegrees"] = 255.0
    points = write_rate(tmp_path / "a.grib2", np.arange(600.0), keys)
    header = read_header(tmp_path / "a.grib2")
    latitude, longitude = header.grid.latitude_longitude()
    if upwards:
        np.testing.assert_allclose(latitude.ravel(), points[0], atol=1e-3)
        np.testing.assert_allclose(longitude.ravel() % 360, points[1] % 360, atol=1e-3)
    else:  # eccodes' points rise whatever the flag; the first point is in the northern row
        assert (latitude[-1, 0], longitude[-1, 0] % 360) == pytest.approx((23.117, 240.98))
    values = read_rain(header, 0, ZRRelation())
    assert values[19 if upwards else 0, 29] == pytest.approx(599, rel=1e-3)


DEGREES = {
    "Ni": 3, "Nj": 2, "jScansPositively": 1,
    "latitudeOfFirstGridPointInDegrees": 50.0, "latitudeOfLastGridPointInDegrees": 51.0,
    "longitudeOfFirstGridPointInDegrees": 5.0, "longitudeOfLastGridPointInDegrees": 7.0,
    "iDirectionIncrementInDegrees": 1.0, "jDirectionIncrementInDegrees": 1.0,
}  # fmt: skip


def test_a_map_by_columns_is_turned(tmp_path):
    keys = DEGREES | {"jPointsAreConsecutive": 1}
    path = tmp_path / "a.grib2"
    write_rate(path, np.arange(6.0), keys)
    values = read_rain(read_header(path), 0, ZRRelation())
    np.testing.assert_allclose(values, [[0, 2, 4], [1, 3, 5]], atol=1e-3)
    write_rate(path, np.arange(6.0), keys | {"alternativeRowScanning": 1})
    with pytest.raises(DataError, match="found alternativeRowScanning 1"):
        read_header(path)
    write_rate(path, np.arange(6.0), keys | {"longitudeOfLastGridPointInDegrees": 27.0})
    with pytest.raises(DataError, match="expected 2 cells between the corners"):
        read_header(path)


def test_cells_around_a_rotated_pole_lie_where_their_points_are(tmp_path):
    keys = DEGREES | {"latitudeOfSouthernPoleInDegrees": -36.0885, "angleOfRotation": 0}
    keys |= {"longitudeOfSouthernPoleInDegrees": 245.305}
    path = tmp_path / "a.grib2"
    points = write_rate(path, np.arange(6.0), keys, "rotated_ll_sfc_grib2")
    latitude, longitude = read_header(path).grid.latitude_longitude()
    np.testing.assert_allclose(latitude.ravel(), points[0], atol=1e-4)
    np.testing.assert_allclose(longitude.ravel() % 360, points[1] % 360, atol=1e-4)
    write_rate(path, np.arange(6.0), keys | {"angleOfRotation": 30.0}, "rotated_ll_sfc_grib2")
    with pytest.raises(DataError, match="found an angle of 30"):
        read_header(path)


def run_lengths(path):
    """Rewrite a message of two rows of three in run-length packing; level 0, missing, is first."""
    content = path.read_bytes()
    sections, at = {}, 16
    while content[at : at + 4] != b"7777":
        (length,) = struct.unpack_from(">I", content, at)
        sections[content[at + 4]] = content[at : at + length]
        at += length
    # Levels 1 and 2 are 0.5 and 1.5; in eight bits, runs of a level follow it in base 253.
    data = bytes([0, 3 + 1, 2, 1, 3 + 2])
    sections[5] = struct.pack(">IBIHBHHBHH", 21, 5, 6, 200, 8, 2, 2, 1, 5, 15)
    sections[7] = struct.pack(">IB", 5 + len(data), 7) + data
    body = b"".join(sections.values()) + b"7777"
    path.write_bytes(content[:8] + struct.pack(">Q", 16 + len(body)) + body)


def test_points_that_run_length_packing_leaves_out_are_missing(tmp_path):
    path = tmp_path / "a.grib2"
    write_rate(path, np.arange(6.0), DEGREES)
    run_lengths(path)
    values = grib.read_values(path, read_header(path), 0) / 3600
    np.testing.assert_allclose(values, [[np.nan, np.nan, 1.5], [0.5, 0.5, 0.5]])


def test_a_local_template_is_refused_by_name(tmp_path):
    path = tmp_path / "a.grib2"
    write_rate(path, np.arange(6.0), DEGREES)
    template = path.read_bytes().index(bytes([4, 0, 0, 0, 0, 1, 7])) + 3
    content = bytearray(path.read_bytes())
    content[template : template + 2] = struct.pack(">H", 50008)
    path.write_bytes(bytes(content))
    with pytest.raises(DataError, match=r"local template 4\.50008"):
        read_header(path)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda b: 2 * b, "expected one map a time, found two"),
        (lambda b: b[:-30], "damaged or trun"),
    ],
)
def test_maps_of_one_time_and_files_cut_short_are_refused(tmp_path, change, sentence):
    path = write_grib(tmp_path / "a.grib2", count=1)
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(DataError, match=rf"a\.grib2: .*{sentence}"):
        read_header(path)


MADE = "typeOfStatisticalProcessing"
#: WMO's product template, further keys, and the number of the parameter.
STATISTICS = [
    (1, {}, 7), (2, {}, 7), (5, {}, 7), (6, {}, 7), (9, {}, 8), (11, {}, 8), (12, {}, 8),
    (8, {MADE: 2}, 7), (8, {MADE: 2}, 8), (8, {MADE: 0}, 8), (8, {MADE: 1}, 7),
]  # fmt: skip


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ({"discipline": 0}, "expected a rain rate.*found .*0, 6, 1"),
        (WMO | {"parameterNumber": 7, "step": 3}, "found a forecast for 180 minutes ahead"),
        (
            WMO | HOUR | {"parameterNumber": 8, "typeOfGeneratingProcess": 2},
            "expected an observation, found a forecast for 60 minutes",
        ),
        *(  # members, probabilities and maxima
            (
                WMO | {"productDefinitionTemplateNumber": template, "parameterNumber": number}
                | more | ({"stepRange": "0-1"} if template >= 8 else {}),
                rf"template 4\.{template} with statistical process",
            )
            for template, more, number in STATISTICS
        ),
    ],
)  # fmt: skip
def test_other_products_than_observed_rain_are_refused(tmp_path, keys, sentence):
    path = write_grib(tmp_path / "a.grib2", count=1, **keys)
    with pytest.raises(DataError, match=rf"a\.grib2: .*{sentence}"):
        read_header(path)
