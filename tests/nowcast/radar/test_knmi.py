"""KNMI composites: calibration, time and projection as the file states them."""

from __future__ import annotations

import h5py
import numpy as np
import pyproj
import pytest

from daskdl.errors import DataError
from nowcast.radar import composite, knmi
from nowcast.radar.reader import read_header
from nowcast.rain.rainrate import ZRRelation

NAME = "knmi/2010/08/RAD_NL25_RAP_5min_201008260300.h5"


def test_the_grid_has_the_corners_that_the_file_gives(radar_dir):
    grid = read_header(radar_dir / NAME).grid
    assert grid.shape == (765, 700)
    to_geographic = pyproj.Transformer.from_crs(grid.crs, "EPSG:4326", always_xy=True)
    edges_x = grid.x[[0, 0, -1, -1]] + np.array([-500, -500, 500, 500])
    edges_y = grid.y[[0, -1, -1, 0]] + np.array([-500, 500, 500, -500])
    longitude, latitude = to_geographic.transform(edges_x, edges_y)
    with h5py.File(radar_dir / NAME) as file:
        corners = file["geographic"].attrs["geo_product_corners"].reshape(4, 2)
    np.testing.assert_allclose(np.stack([longitude, latitude], 1), corners, atol=0.005)


def test_rain_is_the_accumulation_by_the_hour_from_south_to_north(radar_dir):
    header = read_header(radar_dir / NAME)
    assert header.times == (np.datetime64("2010-08-26T03:00:00"),)
    assert header.accumulation == np.timedelta64(5, "m")
    rain = composite.read_rain(header, 0, ZRRelation())
    with h5py.File(radar_dir / NAME) as file:
        raw = file["image1/image_data"][:]
    assert np.array_equal(np.isnan(rain), raw[::-1] == 65535)
    assert ((rain == 0) == (raw[::-1] == 0)).all()
    assert np.nanmax(rain) == pytest.approx(raw[raw < 65535].max() * 0.01 * 12)


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("GEO=0.01*PV+0.0", (0.01, 0.0)),
        ("GEO = 0.5 * PV - 31.5", (0.5, -31.5)),
        ("GEO=2*PV", (2, 0)),
    ],
)
def test_calibration_is_read_and_not_assumed(formula, expected):
    assert knmi._calibration(formula, "a.h5") == expected


def test_an_unknown_calibration_is_refused():
    with pytest.raises(DataError, match=r"a\.h5: expected a calibration.*found 'LOG\(PV\)'"):
        knmi._calibration("LOG(PV)", "a.h5")
