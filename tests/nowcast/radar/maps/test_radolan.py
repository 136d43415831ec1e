"""RADOLAN composites are as wradlib reads them, and their codes are understood."""

from __future__ import annotations

import warnings

import numpy as np
import pyproj
import pytest

from daskdl.errors import DataError
from nowcast.radar.header import Format
from nowcast.radar.maps import radolan
from nowcast.radar.reader import read_header, read_rain
from nowcast.rain.rainrate import ZRRelation
from tests.nowcast.radar.composite_files import write_radolan


@pytest.mark.parametrize(
    ("pattern", "time"), [("ry/*1535*", "2020-01-01T15:35"), ("yw/*0125*", "2017-08-16T01:25")]
)
def test_products_are_as_wradlib_reads_them(radar_dir, pattern, time):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wradlib = pytest.importorskip("wradlib")
        (path,) = (radar_dir / "radolan").glob(pattern)
        amount, attributes = wradlib.io.read_radolan_composite(str(path))
        corners = wradlib.georef.get_radolan_grid(*amount.shape)
    header = read_header(path)
    assert header.format is Format.RADOLAN
    assert header.times == (np.datetime64(time),)
    assert header.accumulation == np.timedelta64(5, "m")
    rain_rate = read_rain(header, 0, ZRRelation())
    clutter = np.zeros(amount.size, bool)
    clutter[attributes["cluttermask"]] = True
    missing = (amount == attributes["nodataflag"]) | clutter.reshape(amount.shape)
    np.testing.assert_array_equal(np.isnan(rain_rate), missing)
    np.testing.assert_allclose(rain_rate[~missing], amount[~missing] * 12, rtol=1e-5)
    # wradlib gives the corners of the cells in km on the same sphere.
    grid = header.grid
    assert grid.x0 - 500 == pytest.approx(corners[0, 0, 0] * 1000, abs=1)
    assert grid.y0 - 500 == pytest.approx(corners[0, 0, 1] * 1000, abs=1)
    assert grid.x[-1] - 500 == pytest.approx(corners[-1, -1, 0] * 1000, abs=1)


@pytest.mark.parametrize("shape", radolan.CORNERS)
def test_all_grids_equal_wradlibs(shape):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wradlib = pytest.importorskip("wradlib")
        corners = wradlib.georef.get_radolan_grid(*shape)
    grid = radolan._grid(b"GP%dx %d" % shape)
    assert grid.shape == shape
    assert (grid.x0 - 500, grid.y0 - 500) == pytest.approx(tuple(corners[0, 0] * 1000), abs=1)


def test_hourly_amounts_and_their_codes(tmp_path):
    header = read_header(write_radolan(tmp_path / "rw"))
    assert header.station == "RADOLAN RW"
    assert header.times == (np.datetime64("2024-05-31T19:50"),)
    assert header.accumulation == np.timedelta64(60, "m")
    rain_rate = read_rain(header, 0, ZRRelation())
    assert rain_rate[350, 350] == pytest.approx(12.0)
    assert rain_rate[300, 300] == pytest.approx(1.5)
    assert rain_rate[200, 200] == 0
    assert np.isnan(rain_rate[0, 0])
    assert np.isnan(rain_rate[360, 360])


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda b: b[:-10], "expected 1620000 bytes .* found 1619990"),
        (lambda b: b.replace(b"GP 900x 900", b"GP 901x 900"), "a grid of 900 x 900.*found 901 x"),
        (lambda b: b.replace(b"PR E-01", b"PR  ...."), "expected a precision"),
        (lambda b: b.replace(b"RW3119", b"RX3119"), "expected 810000 bytes"),
        (lambda b: b.replace(b"RW3119", b"RE3119"), "expected a RADOLAN product of rain"),
        (lambda b: b.replace(b"MS 31", b"VV 060MS 31"), "a forecast for 60 minutes ahead"),
        (lambda b: b.replace(b"RW3119", b"RW3199"), "expected a date YYYYMMDD and a time"),
        (lambda b: b.replace(b"INT  60", b"INT   0"), "expected the interval"),
    ],
)
def test_damage_is_named(tmp_path, change, sentence):
    path = write_radolan(tmp_path / "rw")
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(DataError, match=f"rw: .*{sentence}"):
        read_rain(read_header(path), 0, ZRRelation())


def written(path, start: bytes, cells: np.ndarray):
    line = start + b"GP%dx%d" % cells.shape + b"MS 31<boo,ros,emd,hnr>"
    path.write_bytes(line + b"\x03" + cells.tobytes())
    return read_header(path)


@pytest.mark.parametrize(("version", "corner"), [(5, (3.566994635, 45.69642538)), (4, None)])
def test_the_grid_of_germany_since_2018_has_the_stated_corners(version, corner):
    grid = radolan._grid(b"VS %dGP1200x1100" % version)
    to_geographic = pyproj.Transformer.from_crs(grid.crs, "EPSG:4326", always_xy=True)
    longitude_latitude = to_geographic.transform(grid.x0 - 500, grid.y0 - 500)
    if corner:
        assert longitude_latitude == pytest.approx(corner, abs=1e-8)
    else:  # the same place on another shape of the earth
        assert longitude_latitude == pytest.approx((3.57, 45.70), abs=0.05)


def test_amounts_of_five_minutes_as_analysed_for_radvor(tmp_path):
    cells = np.zeros((1200, 1100), "<u2")
    cells[10, 20] = 125
    start = b"RV010000100000624BY2640148VS 5SW  P30001HPR E-02INT   5VV 000MF 00000008"
    header = written(tmp_path / "rv", start, cells)
    assert (header.station, header.accumulation) == ("RADOLAN RV", np.timedelta64(5, "m"))
    assert read_rain(header, 0, ZRRelation())[10, 20] == pytest.approx(1.25 * 12)


@pytest.mark.parametrize(("product", "kind"), [("RX", "u1"), ("WN", "<u2")])
def test_reflectivity_in_half_dbz(tmp_path, product, kind):
    cells = np.zeros((900, 900), kind)
    wide = kind != "u1"
    cells[10, 20] = 1250 if wide else 125  # 30 dBZ
    cells[0, :2] = (0x2000, 0x8000 | 900) if wide else (250, 249)
    precision = b"PR E-01" if wide else b"PR E+00"
    start = product.encode() + b"021655100000814BY 810134VS 3SW   2.12.0" + precision + b"INT   5"
    header = written(tmp_path / "x", start, cells)
    assert header.reflectivity
    assert header.accumulation is None
    values = radolan.read_values(tmp_path / "x", header, 0)
    assert values[10, 20] == pytest.approx(30.0)
    assert values[5, 5] == -np.inf
    assert np.isnan(values[0, :2]).all()
