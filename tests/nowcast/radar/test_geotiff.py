"""GeoTIFF composites of the Finnish institute."""

from __future__ import annotations

import sys

import numpy as np
import pyproj
import pytest

from daskdl.errors import DataError, MissingExtraError
from nowcast.radar import composite
from nowcast.radar.header import Format
from nowcast.radar.reader import read_header
from nowcast.rain.rainrate import ZRRelation
from tests.nowcast.radar.composite_files import NX, NY, rain, write_geotiff


def test_reflectivity_and_its_place(tmp_path):
    header = read_header(write_geotiff(tmp_path / "a.tif"))
    assert header.format is Format.GEOTIFF
    assert header.reflectivity
    assert header.times == (np.datetime64("2024-06-01T12:15"),)
    grid = header.grid
    assert (grid.nx, grid.ny, grid.dx, grid.dy) == (NX, NY, 250.0, 250.0)
    # The tie point is the north-western corner.
    assert (grid.x0, grid.y[-1]) == (118_331.0 + 125.0, 7_907_751.0 - 125.0)
    assert pyproj.CRS(grid.crs).to_epsg() == 3067
    relation = ZRRelation(hail_cap=None)
    expected = relation.rain_rate(np.where(rain() == 0, -np.inf, 5 * rain()))
    np.testing.assert_array_equal(composite.read_rain(header, 0, relation), expected)


@pytest.mark.parametrize("metadata", [True, False])
def test_rain_rates(tmp_path, metadata):
    path = tmp_path / "202406011215_FIN-RR-3067-250M.tif"
    header = read_header(write_geotiff(path, metadata=metadata, reflectivity=False))
    assert not header.reflectivity
    assert header.times == (np.datetime64("2024-06-01T12:15"),)
    found = composite.read_rain(header, 0, ZRRelation())
    np.testing.assert_allclose(found, rain(), atol=0.011)


def test_amounts_over_the_hours_of_the_name_become_rates(tmp_path):
    path = tmp_path / "202406011200_FIN-RR12H-3067-250M.tif"
    header = read_header(write_geotiff(path, metadata=False, reflectivity=False))
    assert header.accumulation == np.timedelta64(12, "h")
    found = composite.read_rain(header, 0, ZRRelation())
    np.testing.assert_allclose(found, rain() / 12, atol=0.001)


def test_an_amount_over_an_unknown_time_is_refused(tmp_path):
    with pytest.raises(DataError, match="expected a quantity in dBZ, mm/h or mm"):
        read_header(write_geotiff(tmp_path / "202406011200-RR5MIN.tif", metadata=False))


def test_scale_and_offset_as_gdal_writes_them(tmp_path):
    path = write_geotiff(tmp_path / "202406011215-dbz.tif")
    content = path.read_bytes()
    assert b'"Gain"' in content
    path.write_bytes(content.replace(b'"Gain">0.5<', b'"SCALE">.4<'))
    found = composite.read_rain(read_header(path), 0, ZRRelation(hail_cap=None))
    decibel = np.where(rain() == 0, -np.inf, 0.4 * (2 * (5 * rain() + 32)) - 32)
    np.testing.assert_allclose(found, ZRRelation(hail_cap=None).rain_rate(decibel), rtol=0.05)


def test_floating_point_numbers_are_the_quantity(tmp_path):
    path = write_geotiff(
        tmp_path / "202406011215-rr.tif", metadata=False, reflectivity=False, real=True
    )
    np.testing.assert_allclose(
        composite.read_rain(read_header(path), 0, ZRRelation()), rain(), atol=0.011
    )


def test_a_projection_without_a_code_is_refused_in_a_sentence(tmp_path):
    path = write_geotiff(tmp_path / "202406011215-dbz.tif", epsg=32767)
    with pytest.raises(DataError, match="expected a projection with an EPSG code"):
        read_header(path)


def test_a_name_that_says_nothing_is_refused(tmp_path):
    with pytest.raises(DataError, match="expected a quantity in dBZ, mm/h or mm"):
        read_header(write_geotiff(tmp_path / "202406011215.tif", metadata=False))
    with pytest.raises(DataError, match="expected an observation time"):
        read_header(write_geotiff(tmp_path / "FIN-DBZ.tif", metadata=False))


def test_metadata_that_expand_are_not_read(tmp_path):
    path = write_geotiff(tmp_path / "202406011215-dbz.tif")
    content = path.read_bytes().replace(b"<GDALMetadata>", b"<!DOCTYPE x []>")
    path.write_bytes(content)
    assert read_header(path).reflectivity  # by its name


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
