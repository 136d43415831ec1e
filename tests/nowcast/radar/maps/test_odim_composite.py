"""ODIM_H5 composites: OPERA's as in h5py, and quantities, corners and codes of written files."""

from __future__ import annotations

import h5py
import numpy as np
import pyproj
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from daskdl.errors import DataError
from nowcast.radar.header import Format
from nowcast.radar.reader import read_header, read_rain
from nowcast.rain.rainrate import ZRRelation
from tests.nowcast.radar.composite_files import write_odim

OPERA = "opera/20180824/T_PAAH21_C_EUOC_20180824190000.hdf"


def test_opera_is_as_h5py_reads_it(radar_dir):
    header = read_header(radar_dir / OPERA)
    assert header.format is Format.ODIM_COMPOSITE
    assert header.times == (np.datetime64("2018-08-24T19:00"),)
    rain = read_rain(header, 0, ZRRelation())
    with h5py.File(radar_dir / OPERA) as file:
        raw = file["dataset1/data1/data"][:][::-1]
    np.testing.assert_array_equal(np.isnan(rain), raw == -9999000.0)
    assert (rain[raw == -8888000.0] == 0).all()
    np.testing.assert_allclose(rain[raw >= 0], raw[raw >= 0], rtol=1e-6)


@pytest.mark.parametrize("of_centres", [False, True])
def test_corners_may_be_of_cells_or_of_their_centres(tmp_path, of_centres):
    xs = (1_002_000.0, 1_040_000.0) if of_centres else (1_000_000.0, 1_040_000.0)
    ys = (902_000.0, 948_000.0) if of_centres else (900_000.0, 948_000.0)
    path = write_odim(tmp_path / "a.h5")
    with h5py.File(path, "r+") as file:
        project = pyproj.Proj(file["where"].attrs["projdef"].decode())
        for name, x, y in (("LL", xs[0], ys[0]), ("UR", xs[1], ys[1])):
            longitude, latitude = project(x, y, inverse=True)
            file["where"].attrs[f"{name}_lon"] = longitude
            file["where"].attrs[f"{name}_lat"] = latitude
    grid = read_header(path).grid
    # 20 cells of 2 km: the first and the last centre are 38 km apart, not 40.
    first = (1_002_000.0, 902_000.0) if of_centres else (1_001_000.0, 901_000.0)
    assert (grid.x0, grid.y0) == pytest.approx(first, abs=0.1)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(
    st.sampled_from(["xscale", "yscale", "UR_lon", "UR_lat", "LL_lon", "LL_lat"]),
    st.floats(-0.5, 1.0),
)
def test_corners_and_scale_agree_or_are_refused(tmp_path, key, change):
    path = write_odim(tmp_path / "a.h5")
    truth = read_header(path).grid
    with h5py.File(path, "r+") as file:
        file["where"].attrs[key] *= 1 + change * (1.0 if "scale" in key else 0.01)
    try:
        grid = read_header(path).grid
    except DataError:
        assert abs(change) > 1e-3
        return
    for one, other in ((grid.x, truth.x), (grid.y, truth.y)):
        assert np.abs(one[[0, -1]] - other[[0, -1]]).max() <= 2.5 * truth.dx


LAEA = "+proj=laea +lat_0=52 +lon_0=10 +x_0=4321000 +y_0=3210000 +ellps=GRS80"


def test_an_epsg_code_is_a_projection(tmp_path):
    grids = [
        read_header(write_odim(tmp_path / "a.h5", projdef=projdef)).grid
        for projdef in ("EPSG:3035", LAEA)
    ]
    assert grids[0].x0 == pytest.approx(grids[1].x0)
    assert grids[0].dy == grids[1].dy == 2000.0


def test_a_grid_in_degrees_becomes_one_in_metres(tmp_path):
    path = write_odim(tmp_path / "a.h5")
    with h5py.File(path, "r+") as file:
        file["where"].attrs["projdef"] = np.bytes_("+proj=longlat +datum=WGS84")
        file["where"].attrs.update(
            LL_lon=5.0, LL_lat=40.0, UR_lon=5.4, UR_lat=40.24, xscale=0.02, yscale=0.01
        )
    grid = read_header(path).grid
    latitude, longitude = grid.latitude_longitude()
    assert latitude[0, 0] == pytest.approx(40.005)
    assert longitude[0, -1] == pytest.approx(5.0 + 0.02 * 19.5)


def test_a_composite_of_something_else_names_it(tmp_path):
    with pytest.raises(DataError, match=r"expected a composite of RATE, ACRR.*found QIND, HGHT"):
        read_header(write_odim(tmp_path / "a.h5", "HGHT"))


def test_sizes_may_be_in_the_dataset(tmp_path):
    path = write_odim(tmp_path / "a.h5")
    expected = read_header(path)
    with h5py.File(path, "r+") as file:
        place = file["where"].attrs
        where = file.create_group("dataset2/where").attrs
        for name in ("xsize", "ysize", "xscale", "yscale"):
            where[name] = place[name]
            del place[name]
    assert read_header(path) == expected


def test_two_maps_of_one_quantity_are_refused(tmp_path):
    path = write_odim(tmp_path / "a.h5")
    with h5py.File(path, "r+") as file:
        file.copy("dataset2", file, "dataset3")
    with pytest.raises(DataError, match="RATE once, found it in /dataset2/data1 and /dataset3/d"):
        read_header(path)


OF_DATA, SAYS = "dataset2/what", "found how/simulated True"
#: Quantity, group and its changed attributes, and the sentence; None where the header stays.
STATEMENTS = [
    ("RATE", "where", {"xsize": 10**9}, "'xsize' of /where to be a number from 1 to"),
    ("RATE", "where", {"xscale": -1.0}, "positive spacing"),
    ("RATE", "where", {"LL_lat": np.nan}, "'LL_lat' of /where to be one number"),
    ("RATE", "where", {"projdef": b"+proj=nothing"}, "CRSError"),
    ("RATE", "where", {"projdef": b"+proj=ob_tran +o_proj=longlat +o_lat_p=39 +R=6371229"}, "pole"),
    ("RATE", "where", {"xscale": 2.0}, "20 cells between the corners, 40000 m apart along x"),
    ("RATE", "where", {"yscale": 1800.0}, "24 cells between the corners, 48000 m apart along y"),
    ("RATE", "where", {"projdef": b"+proj=longlat +datum=WGS84"}, "found xscale 2000 degrees"),
    ("RATE", "where", {"ysize": 23}, r"expected a map of \(23, 20\) cells, found \(24, 20\)"),
    ("RATE", OF_DATA, {"starttime": b"124500", "endtime": b"130000"}, None),
    ("RATE", OF_DATA, {"starttime": b"124501", "endtime": b"130000"}, "2024-06-01T12:45:01 to"),
    ("RATE", "dataset2/how", {"simulated": True}, SAYS),
    ("RATE", "how", {"simulated": True}, SAYS),
    ("RATE", "dataset2/how", {"malfunc": True}, "that is sound, found how/malfunc True"),
    ("RATE", "dataset1/how", {"malfunc": True}, None),
    ("RATE", OF_DATA, {"product": b"VSP"}, "found QIND; give composites"),
    ("RATE", "dataset1/what", {"product": b"XSEC", "quantity": b"RATE"}, None),
    *(
        (quantity, OF_DATA, {key: value}, "expected .*found 2024-06-01T")
        for quantity in ("RATE", "DBZH", "ACRR")
        for key, value in (
            ("starttime", b"124000"), ("endtime", b"114000"), ("startdate", b"20240602")
        )
    ),
    *(
        ("RATE", "what", {"date": date, "time": time}, "within what the dataset states")
        for date, time in (
            (b"20240601", b"111500"), (b"20240601", b"131500"), (b"20240601", b"141500"),
            (b"20240602", b"121500"),
        )
    ),
]  # fmt: skip


@pytest.mark.parametrize(("quantity", "group", "changes", "sentence"), STATEMENTS)
def test_attributes_are_followed_or_refused(tmp_path, quantity, group, changes, sentence):
    path = write_odim(tmp_path / "a.h5", quantity)
    expected = read_header(path)
    with h5py.File(path, "r+") as file:
        file.require_group(group).attrs.update(changes)
    if sentence is None:
        assert read_header(path) == expected
    else:
        with pytest.raises(DataError, match=rf"a\.h5: .*{sentence}"):
            read_rain(read_header(path), 0, ZRRelation())
