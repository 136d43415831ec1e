"""The reader of all formats: it reads files that tests write, joins moments and names errors."""

from __future__ import annotations

import dataclasses

import h5py
import numpy as np
import pyproj
import pytest

from daskdl.errors import DataError, MissingExtraError
from nowcast.radar import reader
from nowcast.radar.header import POLAR, Format
from nowcast.radar.polar import odim
from nowcast.radar.reader import read_header, read_rain, read_sweeps
from nowcast.rain.rainrate import ZRRelation
from tests.nowcast.radar.composite_files import rain, write_geotiff, write_grib, write_odim
from tests.nowcast.radar.odim_file import write_sweep


def test_each_format_has_a_reader():
    assert set(reader.SWEEP_READERS) == set(POLAR)
    assert set(reader.MAP_READERS) == set(Format) - set(POLAR)


RATE = "202406011215_FIN-RR-3067-250M.tif"


@pytest.mark.parametrize(
    ("name", "write", "keys", "decibel", "hours", "off"),
    [
        # dBZ a mm h-1 of reflectivity, hours of an amount, and the error of the packing
        ("rate.h5", write_odim, {}, None, None, 0),
        ("amount.h5", write_odim, {"quantity": "ACRR"}, None, 0.25, 1e-5),
        ("echo.h5", write_odim, {"quantity": "DBZH"}, 10, None, 0),
        ("echo.tif", write_geotiff, {}, 5, None, 0),
        (RATE, write_geotiff, {"reflectivity": False}, None, None, 0.011),
        (RATE, write_geotiff, {"reflectivity": False, "metadata": False}, None, None, 0.011),
        (RATE, write_geotiff, {"metadata": False, "real": True}, None, None, 0.011),
        (
            RATE.replace("RR", "RR12H"),
            write_geotiff,
            {"reflectivity": False, "metadata": False},
            None,
            12,
            0.001,
        ),
        ("rate.grib2", write_grib, {}, None, None, 0.051),
        ("six.grib2", write_grib, {"count": 1, "parameterNumber": 11}, None, 6, 0.01),
    ],
)
def test_written_rain_is_read_back(tmp_path, name, write, keys, decibel, hours, off):
    if write is write_grib:
        pytest.importorskip("eccodes")
    header = read_header(write(tmp_path / name, **keys))
    length = None if hours is None else np.timedelta64(int(60 * hours), "m")
    assert (header.accumulation, header.reflectivity) == (length, decibel is not None)
    relation = ZRRelation(hail_cap=None)
    # ODIM's amounts are written as of a quarter of an hour, the others like rates.
    expected = rain() / (hours if hours and hours > 1 else 1)
    if decibel is not None:
        expected = relation.rain_rate(np.where(rain() == 0, -np.inf, decibel * rain()))
    np.testing.assert_allclose(read_rain(header, 0, relation), expected, rtol=0, atol=off)


def test_moments_in_separate_files_are_joined(helchteren):
    path = helchteren[0]
    other = path.with_name(path.name.replace("dbzh", "rhohv"))
    (joined,) = read_sweeps([other, path], Format.ODIM)
    assert joined.dbz is not None
    assert joined.rhohv is not None
    assert joined.dbz.shape == joined.rhohv.shape
    measured = joined.rhohv[~np.isnan(joined.rhohv)]
    assert 0 <= measured.min() < measured.max() < 1


def test_a_file_without_reflectivity_is_refused(tmp_path):
    path = write_sweep(tmp_path / "a.h5", quantity="RHOHV")
    with pytest.raises(DataError, match=r"a\.h5: expected a sweep with reflectivity .DBZH."):
        read_sweeps([path], Format.ODIM)


def test_a_moment_can_be_chosen(polar):
    path = polar / "T_PAZE63_C_LFPW_20230420065446.h5"
    corrected, total = (
        read_sweeps([path], Format.ODIM, moment=moment)[0] for moment in ("DBZH", "TH")
    )
    assert not np.array_equal(corrected.dbz, total.dbz, equal_nan=True)
    with pytest.raises(DataError, match=r"expected a sweep with reflectivity .VRAD."):
        read_sweeps([path], Format.ODIM, moment="VRAD")


def test_a_missing_library_names_the_extra(monkeypatch):
    monkeypatch.setattr(reader, "find_spec", lambda name: None if name == "xradar" else name)
    with pytest.raises(MissingExtraError, match=r"needs xradar; pip install 'daskdl\[nowcast\]'"):
        reader.require_readers()


@pytest.mark.parametrize("times", [(), (np.datetime64("NaT"),)])
def test_a_header_without_a_time_is_an_error(tmp_path, monkeypatch, times):
    path = write_sweep(tmp_path / "a.h5")
    header = reader.read_header(path)
    monkeypatch.setattr(odim, "read_header", lambda *_: dataclasses.replace(header, times=times))
    with pytest.raises(DataError, match=r"a\.h5: expected times from 1980-01-01 .*(NaT|none)"):
        reader.read_header(path)


def test_a_volume_without_sweeps_is_an_error(tmp_path):
    path = write_sweep(tmp_path / "a.h5", elevations=())
    with pytest.raises(DataError, match=r"a\.h5: expected at least one dataset with a start time"):
        reader.read_header(path)


NAME = "knmi/2010/08/RAD_NL25_RAP_5min_201008260300.h5"


@pytest.mark.parametrize(
    ("image", "sentence"),
    [
        (np.zeros((3, 4), np.uint16), r"expected a map of \(765, 700\) cells"),
        (None, r"damaged or truncated KNMI HDF5 file \(KeyError"),
    ],
)
def test_an_image_of_another_size_or_none_is_an_error(radar_dir, tmp_path, image, sentence):
    path = tmp_path / "a.h5"
    path.write_bytes((radar_dir / NAME).read_bytes())
    header = read_header(path)
    with h5py.File(path, "r+") as file:
        del file["image1/image_data"]
        if image is not None:
            file["image1/image_data"] = image
    with pytest.raises(DataError, match=rf"a\.h5: {sentence}"):
        read_rain(header, 0, ZRRelation())


#: Longitude and latitude of corners as the files or their formats state them, and the error in m.
CORNERS = {
    NAME: (
        {"LL": (0, 49.362), "UL": (0, 55.974), "UR": (10.856, 55.389), "LR": (9.009, 48.895)},
        300,
    ),
    "fmi/20160928/201609281800_fmi.radar.composite.lowest_FIN_SUOMI1.pgm.gz": (
        {"LL": (18.6, 57.93), "UR": (34.903, 69.005)},
        5,
    ),
    "opera/20180824/T_PAAH21_C_EUOC_20180824190000.hdf": (
        {
            "LL": (-10.434576839, 31.746215319),
            "LR": (29.421038636, 31.987650278),
            "UL": (-39.535786413, 67.022832758),
            "UR": (57.811964750, 67.621037103),
        },
        1,
    ),
}


@pytest.mark.parametrize("name", CORNERS)
def test_a_grid_ends_at_the_corners_that_the_file_gives(radar_dir, name):
    grid = read_header(radar_dir / name).grid
    corners, off = CORNERS[name]
    for corner, place in corners.items():
        x = grid.x[-1] + grid.dx / 2 if corner[1] == "R" else grid.x[0] - grid.dx / 2
        y = grid.y[-1] + grid.dy / 2 if corner[0] == "U" else grid.y[0] - grid.dy / 2
        assert pyproj.Proj(grid.crs)(*place) == pytest.approx((x, y), abs=off)
