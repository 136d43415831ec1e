"""RADOLAN composites are as wradlib reads them, and codes mean what they mean."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from daskdl.errors import DataError
from nowcast.radar import composite, radolan
from nowcast.radar.header import Format
from nowcast.radar.reader import read_header
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
    found = composite.read_rain(header, 0, ZRRelation())
    clutter = np.zeros(amount.size, bool)
    clutter[attributes["cluttermask"]] = True
    missing = (amount == attributes["nodataflag"]) | clutter.reshape(amount.shape)
    np.testing.assert_array_equal(np.isnan(found), missing)
    np.testing.assert_allclose(found[~missing], amount[~missing] * 12, rtol=1e-5)
    # wradlib gives the corners of the cells in km on the same sphere.
    grid = header.grid
    assert grid.x0 - 500 == pytest.approx(corners[0, 0, 0] * 1000, abs=1)
    assert grid.y0 - 500 == pytest.approx(corners[0, 0, 1] * 1000, abs=1)
    assert grid.x[-1] - 500 == pytest.approx(corners[-1, -1, 0] * 1000, abs=1)


@pytest.mark.parametrize("shape", radolan.CORNERS)
def test_all_grids_are_wradlibs(shape):
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
    found = composite.read_rain(header, 0, ZRRelation())
    assert found[350, 350] == pytest.approx(12.0)
    assert found[300, 300] == pytest.approx(1.5)
    assert found[200, 200] == 0
    assert np.isnan(found[0, 0])
    assert np.isnan(found[360, 360])


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda b: b[:-10], "expected 1620000 bytes .* found 1619990"),
        (lambda b: b.replace(b"GP 900x 900", b"GP 901x 900"), "a grid of 900 x 900.*found 901 x"),
        (lambda b: b.replace(b"PR E-01", b"PR  ...."), "expected a precision"),
        (lambda b: b.replace(b"RW3119", b"RX3119"), "expected a RADOLAN product of rain"),
        (lambda b: b.replace(b"RW3119", b"RE3119"), "expected a RADOLAN product of rain"),
        (lambda b: b.replace(b"MS 31", b"VV 060MS 31"), "a forecast for 60 minutes ahead"),
        (lambda b: b.replace(b"RW3119", b"RW3199"), "damaged or truncated RADOLAN file"),
        (lambda b: b.replace(b"INT  60", b"INT   0"), "expected the interval"),
    ],
)
def test_damage_is_named(tmp_path, change, sentence):
    path = write_radolan(tmp_path / "rw")
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(DataError, match=f"rw: .*{sentence}"):
        composite.read_rain(read_header(path), 0, ZRRelation())
