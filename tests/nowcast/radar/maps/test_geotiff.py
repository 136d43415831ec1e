"""GeoTIFF composites of the Finnish institute."""

from __future__ import annotations

import sys

import numpy as np
import pyproj
import pytest

from daskdl.errors import DataError, MissingExtraError
from nowcast.radar.header import Format
from nowcast.radar.maps import geotiff
from nowcast.radar.maps.projection import geographic_grid, in_metres
from nowcast.radar.reader import read_header, read_rain
from nowcast.rain.rainrate import ZRRelation
from tests.nowcast.radar.composite_files import NX, NY, rain, write_geotiff


def test_the_place_of_the_grid(tmp_path):
    header = read_header(write_geotiff(tmp_path / "a.tif"))
    assert header.format is Format.GEOTIFF
    assert header.times == (np.datetime64("2024-06-01T12:15"),)
    grid = header.grid
    assert (grid.nx, grid.ny, grid.dx, grid.dy) == (NX, NY, 250.0, 250.0)
    # The tie point is the north-western corner.
    assert (grid.x0, grid.y[-1]) == (118_331.0 + 125.0, 7_907_751.0 - 125.0)
    assert pyproj.CRS(grid.crs).to_epsg() == 3067


@pytest.mark.parametrize("subfile", [0, 1])
def test_further_maps_are_refused_and_overviews_are_not(tmp_path, subfile):
    tifffile = pytest.importorskip("tifffile")
    path = write_geotiff(tmp_path / "a.tif")
    values = np.zeros((NY // 2, NX // 2), np.uint8)
    tifffile.imwrite(path, values, append=True, subfiletype=subfile)
    if subfile:
        assert read_header(path).grid.shape == (NY, NX)
    else:
        with pytest.raises(DataError, match="expected one map, found 2 pages"):
            read_header(path)


def test_scale_and_offset_as_gdal_writes_them(tmp_path):
    path = write_geotiff(tmp_path / "202406011215-dbz.tif")
    content = path.read_bytes()
    assert b'"Gain"' in content
    path.write_bytes(content.replace(b'"Gain">0.5<', b'"SCALE">.4<'))
    values = read_rain(read_header(path), 0, ZRRelation(hail_cap=None))
    decibel = np.where(rain() == 0, -np.inf, 0.4 * (2 * (5 * rain() + 32)) - 32)
    np.testing.assert_allclose(values, ZRRelation(hail_cap=None).rain_rate(decibel), rtol=0.05)


def test_a_unit_without_a_gain_is_the_quantity_itself(tmp_path):
    path = write_geotiff(tmp_path / "202406011215-rr.tif", reflectivity=False)
    path.write_bytes(path.read_bytes().replace(b'"Gain"', b'"Gone"'))
    values = geotiff.read_values(path, read_header(path), 0)
    np.testing.assert_allclose(values, 100 * rain(), atol=1)


@pytest.mark.parametrize(
    ("name", "unit", "factor"),
    [("dbz", "mm/h", 1), ("rr", "mm h-1", 1), ("rr", "kg m-2 s-1", 3600), ("rr24h", "cm", 10 / 24)],
)
def test_the_unit_that_gdal_states_comes_before_the_files_name(tmp_path, name, unit, factor):
    path = tmp_path / f"202406011215-{name}.tif"
    header = read_header(write_geotiff(path, reflectivity=False, unit=unit))
    values = geotiff.read_values(path, header, 0)
    np.testing.assert_allclose(values, factor * rain(), atol=0.01 * factor)


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        (b'"Gain">0.5<', b'"Gain">0,5<', "expected a number as gain in the metadata, found '0,5'"),
        (b"202406011215<", b"202406011815<", "expected the time of the file's name"),
    ],
)
def test_metadata_that_contradict_are_refused(tmp_path, before, after, sentence):
    path = write_geotiff(tmp_path / "202406011215-dbz.tif")
    path.write_bytes(path.read_bytes().replace(before, after))
    with pytest.raises(DataError, match=rf"202406011215-dbz\.tif: {sentence}"):
        read_rain(read_header(path), 0, ZRRelation())


def test_metadata_that_expand_are_not_read(tmp_path):
    path = write_geotiff(tmp_path / "202406011215-dbz.tif")
    content = path.read_bytes().replace(b"<GDALMetadata>", b"<!DOCTYPE x []>")
    path.write_bytes(content)
    assert read_header(path).reflectivity  # from its name


def test_an_image_without_a_place_is_refused(tmp_path):
    import tifffile

    tifffile.imwrite(tmp_path / "202406011215-dbz.tif", np.zeros((4, 5), np.uint8))
    with pytest.raises(DataError, match="expected a projection by its EPSG code"):
        read_header(tmp_path / "202406011215-dbz.tif")


def test_without_tifffile_the_extra_is_named(tmp_path, monkeypatch):
    path = write_geotiff(tmp_path / "a.tif")
    monkeypatch.setitem(sys.modules, "tifffile", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'daskdl\[geotiff\]'"):
        read_header(path)


def test_cells_lie_at_their_degrees():
    grid = geographic_grid(-129.995, 20.005, 0.01, 0.02, 70, 35)
    latitude, longitude = grid.latitude_longitude()
    np.testing.assert_allclose(latitude[:, 0], 20.005 + 0.02 * np.arange(35), atol=1e-9)
    np.testing.assert_allclose(longitude[0], -129.995 + 0.01 * np.arange(70), atol=1e-9)


def test_the_scale_is_true_in_the_middle():
    grid = geographic_grid(-10.0, 59.5, 1.0, 1.0, 21, 2)
    assert grid.dy == pytest.approx(111_195, rel=1e-4)
    assert grid.dx == pytest.approx(111_195 / 2, rel=1e-4)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("+proj=stere +a=6378.137 +b=6356.752", "+proj=stere +a=6378137.000 +b=6356752.000"),
        ("+proj=stere +R=6370.04 +units=km", "+proj=stere +R=6370040.000"),
        ("+proj=laea +lat_0=55 +x_0=1950000 +ellps=WGS84", None),
        ("+proj=stere +a=6378137 +units=m", "+proj=stere +a=6378137.000"),
    ],
)  # fmt: skip
def test_lengths_are_metres(text, expected):
    assert in_metres(text) == (expected or text) + " +units=m"


QUANTITY = "expected a quantity in dBZ, mm/h or mm"


@pytest.mark.parametrize(
    ("name", "keys", "sentence"),
    [
        ("202406011200-RR5MIN.tif", {"metadata": False}, QUANTITY),
        ("202406011215.tif", {"metadata": False}, QUANTITY),
        ("FIN-DBZ.tif", {"metadata": False}, "expected an observation time"),
        ("202406011215-dbz.tif", {"unit": "furlong"}, f"{QUANTITY}.*found furlong"),
        ("dbz.tif", {"epsg": 2263}, "expected a projection in metres, found .* in US survey"),
        ("dbz.tif", {"epsg": 32767}, "expected a projection with an EPSG code"),
    ],
)
def test_missing_metadata_are_named(tmp_path, name, keys, sentence):
    with pytest.raises(DataError, match=sentence):
        read_header(write_geotiff(tmp_path / name, **keys))
