"""KNMI composites: calibration, time and projection as the file states them."""

from __future__ import annotations

import h5py
import numpy as np
import pytest

from daskdl.errors import DataError
from nowcast.radar.maps import knmi
from nowcast.radar.reader import read_header, read_rain
from nowcast.rain.rainrate import ZRRelation

NAME = "knmi/2010/08/RAD_NL25_RAP_5min_201008260300.h5"


@pytest.mark.parametrize(
    ("key", "value"),
    [("geo_row_offset", 3600.0), ("geo_column_offset", 50.0), ("geo_pixel_size_x", 2.0)],
)
def test_a_grid_that_contradicts_its_corners_is_refused(radar_dir, tmp_path, key, value):
    path = tmp_path / "a.h5"
    path.write_bytes((radar_dir / NAME).read_bytes())
    with h5py.File(path, "r+") as file:
        file["geographic"].attrs[key] = np.array([value], np.float32)
    with pytest.raises(DataError, match="cells between the corners"):
        read_header(path)


def test_rain_is_the_accumulation_by_the_hour_from_south_to_north(radar_dir):
    header = read_header(radar_dir / NAME)
    assert header.times == (np.datetime64("2010-08-26T03:00:00"),)
    assert header.accumulation == np.timedelta64(5, "m")
    rain = read_rain(header, 0, ZRRelation())
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
        ("GEO=0.500000*PV+-32.000000", (0.5, -32.0)),
        ("GEO=2*PV", (2, 0)),
    ],
)
def test_calibration_is_read_and_not_assumed(formula, expected):
    assert knmi._calibration(formula) == expected


def test_an_unknown_calibration_is_refused():
    with pytest.raises(DataError, match=r"expected a calibration.*found 'LOG\(PV\)'"):
        knmi._calibration("LOG(PV)")


def write_knmi(path, images=1):
    with h5py.File(path, "w") as file:
        overview = file.create_group("overview").attrs
        for edge in ("start", "end"):
            overview[f"product_datetime_{edge}"] = np.bytes_("26-AUG-2010;03:00:00.000")
        place = file.create_group("geographic")
        place.attrs.update(geo_dim_pixel=np.bytes_("KM,KM"), geo_pixel_size_x=1.0)
        place.attrs.update(geo_pixel_size_y=-1.0, geo_column_offset=0.0, geo_row_offset=3650.0)
        place.attrs.update(geo_number_columns=20, geo_number_rows=10)
        projection = "+proj=stere +lat_0=90 +lon_0=0.0 +lat_ts=60.0 +a=6378.14 +b=6356.75 +x_0=0"
        place.create_group("map_projection").attrs["projection_proj4_params"] = np.bytes_(
            projection + " y_0=0"
        )
        for i in range(1, images + 1):
            image = file.create_group(f"image{i}")
            image.attrs["image_geo_parameter"] = np.bytes_("REFLECTIVITY_[DBZ]")
            raw = np.zeros((10, 20), "u1")
            raw[0, :3], raw[9, 1] = (255, 124, 1), 64
            image["image_data"] = raw
            image.create_group("calibration").attrs.update(
                calibration_formulas=np.bytes_("GEO=0.500000*PV+-32.000000"),
                calibration_missing_data=0,
                calibration_out_of_image=255,
            )
    return path


def test_reflectivity_has_one_code_for_no_echo_and_one_for_out_of_the_image(tmp_path):
    header = read_header(write_knmi(tmp_path / "a.h5"))
    assert (header.reflectivity, header.accumulation) == (True, None)
    dbz = knmi.read_values(tmp_path / "a.h5", header, 0)[::-1]
    assert np.isnan(dbz).sum() == np.isnan(dbz[0, 0]) == 1
    assert (dbz[0, 1], dbz[0, 2], dbz[9, 1], dbz[5, 5]) == (30.0, -31.5, 0.0, -np.inf)


def test_offsets_count_pixels(tmp_path):
    path = write_knmi(tmp_path / "a.h5")
    with h5py.File(path, "a") as file:
        file["geographic"].attrs.update(geo_pixel_size_x=2.0, geo_pixel_size_y=-2.0)
        file["geographic"].attrs.update(geo_column_offset=40.0, geo_row_offset=1825.0)
    grid = read_header(path).grid
    assert (grid.x0, grid.y0, grid.dx, grid.dy) == (81_000.0, -3_669_000.0, 2_000.0, 2_000.0)


def test_offsets_of_other_points_of_pixels_are_refused(tmp_path):
    path = write_knmi(tmp_path / "a.h5")
    for pixel in ("LU", "CENTRE"):
        with h5py.File(path, "a") as file:
            file["geographic"].attrs["geo_pixel_def"] = np.bytes_(pixel)
        if pixel == "LU":
            assert read_header(path).grid.shape == (10, 20)
    with pytest.raises(DataError, match=r"upper left corners \(LU\), found 'CENTRE'"):
        read_header(path)


def test_a_forecast_of_several_images_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"expected one image, found 25, as in forecasts"):
        read_header(write_knmi(tmp_path / "a.h5", images=25))
