"""GRIB2 rain rates: MRMS's as eccodes has it point by point, and made ones."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from daskdl.errors import DataError, MissingExtraError
from nowcast.radar import composite
from nowcast.radar.header import Format
from nowcast.radar.reader import read_header
from nowcast.rain.rainrate import ZRRelation
from tests.nowcast.radar.composite_files import rain, write_grib

eccodes = pytest.importorskip("eccodes")
MRMS = "mrms/PrecipRate_00.00_20190610-000200.grib2"


@pytest.mark.slow
def test_mrms_is_as_eccodes_finds_it_at_points(radar_dir):
    header = read_header(radar_dir / MRMS)
    assert header.format is Format.GRIB
    assert header.station == "MRMS"
    assert header.times == (np.datetime64("2019-06-10T00:02"),)
    grid = header.grid
    assert grid.shape == (3500, 7000)
    found = composite.read_rain(header, 0, ZRRelation())
    assert np.nanmax(found) == pytest.approx(149.8, abs=0.01)
    latitude, longitude = (
        (grid.y0 + grid.dy * np.arange(3500)) / grid.dy * 0.01,
        -94.995 - 35.0 + 0.01 * np.arange(7000),
    )
    random = np.random.default_rng(0)
    wet = np.argwhere(found > 1)
    cells = [*wet[random.integers(0, len(wet), 6)], (1, 1), (3498, 6998), (1700, 3000)]
    with (radar_dir / MRMS).open("rb") as file:
        message = eccodes.codes_grib_new_from_file(file)
        for row, column in cells:
            (nearest,) = eccodes.codes_grib_find_nearest(
                message, latitude[row], longitude[column] % 360
            )
            assert nearest.distance < 0.1  # km
            value = found[row, column]
            assert nearest.value == pytest.approx(-3.0 if np.isnan(value) else value, abs=1e-4)
        eccodes.codes_release(message)


def test_each_message_is_a_map(tmp_path):
    header = read_header(write_grib(tmp_path / "a.grib2", count=3))
    assert [str(time)[11:16] for time in header.times] == ["12:00", "12:02", "12:04"]
    for index in (0, 2):
        found = composite.read_rain(header, index, ZRRelation())
        np.testing.assert_allclose(found, rain(), atol=0.051)
    latitude, longitude = header.grid.latitude_longitude()
    assert latitude[0, 0] == pytest.approx(45.0)
    assert latitude[-1, 0] == pytest.approx(45.0 + 0.5 * 23)
    assert longitude[0, 0] == pytest.approx(-100.0)
    assert longitude[0, -1] == pytest.approx(-100.0 + 0.5 * 19)


def test_other_parameters_are_no_rain(tmp_path):
    path = write_grib(tmp_path / "a.grib2", count=1)
    content = bytearray(path.read_bytes())
    content[6] = 0  # the discipline
    path.write_bytes(bytes(content))
    with pytest.raises(DataError, match=r"a\.grib2: expected a rain rate"):
        read_header(path)


def test_a_file_cut_short_is_named(tmp_path):
    path = write_grib(tmp_path / "a.grib2", count=1)
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(DataError, match=r"a\.grib2: damaged or truncated GRIB2 file"):
        read_header(path)


def test_without_eccodes_the_extra_is_named(tmp_path, monkeypatch):
    path = write_grib(tmp_path / "a.grib2", count=1)
    monkeypatch.setitem(sys.modules, "eccodes", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'daskdl\[grib\]'"):
        read_header(path)
