"""ODIM_H5: headers, order of sweeps, undetect and nodata."""

from __future__ import annotations

import h5py
import numpy as np
import pytest
import xarray as xr

from daskdl.errors import DataError
from nowcast.radar.header import Format
from nowcast.radar.reader import read_header, read_sweeps
from tests.nowcast.radar.odim_file import RAYS, write_sweep


def test_the_lowest_sweep_is_read_at_any_position(tmp_path):
    path = write_sweep(tmp_path / "a.h5", elevations=(9.0, 4.0, 0.5, 2.0, 90.0))
    (sweep,) = read_sweeps([path], Format.ODIM)
    assert sweep.elevation == 0.5
    assert np.nanmax(sweep.dbz) == 32.0
    low = read_sweeps([path], Format.ODIM, cuts=3)
    assert [sweep.elevation for sweep in low] == [0.5, 2.0, 4.0]


def test_undetect_is_no_echo_and_nodata_is_missing(tmp_path):
    (sweep,) = read_sweeps([write_sweep(tmp_path / "a.h5")], Format.ODIM)
    assert np.isnan(sweep.dbz[40, 30])
    assert np.isnan(sweep.dbz).sum() == 1
    assert np.isneginf(sweep.dbz).sum() == sweep.dbz.size - 100 - 1
    assert (sweep.dbz[10:20, 10:20] == 30.0).all()


@pytest.mark.parametrize("stops", [True, False])
def test_a_counter_clockwise_turn_does_not_mirror_the_picture(tmp_path, stops):
    path = write_sweep(tmp_path / "a.h5")
    edges = np.arange(RAYS, -1, -1) * (360.0 / RAYS)
    with h5py.File(path, "a") as file:
        how = file["dataset1"].require_group("how").attrs
        how["startazA"] = edges[:-1]
        if stops:
            how["stopazA"] = edges[1:]
        stored = file["dataset1/data1/data"][:]
    (sweep,) = read_sweeps([path], Format.ODIM)
    np.testing.assert_allclose(sweep.azimuth, (np.arange(RAYS) + 0.5) * (360.0 / RAYS))
    np.testing.assert_array_equal(np.isneginf(sweep.dbz), (stored == 0)[::-1])


@pytest.mark.parametrize("key", ["azangles", "azangels"])
def test_the_text_of_angles_of_version_2_0_places_the_rays(tmp_path, key):
    path, width = write_sweep(tmp_path / "a.h5"), 360.0 / RAYS
    first = (np.arange(RAYS) - 7) % RAYS * width
    with h5py.File(path, "a") as file:
        pairs = (f"{start:g}:{start + width:g}," for start in first)
        file["dataset1"].require_group("how").attrs[key] = np.bytes_("".join(pairs))
        stored = file["dataset1/data1/data"][:]
    (sweep,) = read_sweeps([path], Format.ODIM)
    np.testing.assert_allclose(sweep.azimuth, (np.arange(RAYS) + 0.5) * width)
    np.testing.assert_array_equal(np.isneginf(sweep.dbz), np.roll(stored == 0, -7, axis=0))


@pytest.mark.parametrize("key", ["antspeed", "rpm"])
def test_sorted_rays_of_a_counter_clockwise_turn_end_at_the_previous_ray(tmp_path, key):
    path, width = write_sweep(tmp_path / "a.h5"), 360.0 / RAYS
    with h5py.File(path, "a") as file:
        how = file["dataset1"].require_group("how").attrs
        how["startazA"], how[key] = (np.arange(RAYS) + 1.0) * width, -18.0
        stored = file["dataset1/data1/data"][:]
    (sweep,) = read_sweeps([path], Format.ODIM)
    np.testing.assert_allclose(sweep.azimuth, (np.arange(RAYS) + 0.5) * width)
    np.testing.assert_array_equal(np.isneginf(sweep.dbz), stored == 0)


def test_one_code_for_nodata_and_undetect_is_undetect(tmp_path):
    # As in the volumes of the Bureau of Meteorology: clear air is not missing.
    path = write_sweep(tmp_path / "a.h5", nodata=0.0)
    (sweep,) = read_sweeps([path], Format.ODIM)
    assert not np.isnan(sweep.dbz).any()
    assert np.isneginf(sweep.dbz).sum() == sweep.dbz.size - 100 - 1


def test_attributes_of_one_element_are_read_as_the_element(tmp_path):
    # As in the volumes of KNMI.
    path, other_path = (write_sweep(tmp_path / name) for name in ("a.h5", "b.h5"))

    def wrap(name, node):
        for key, value in list(node.attrs.items()):
            node.attrs[key] = np.array([value])

    with h5py.File(path, "r+") as file:
        wrap("/", file)
        file.visititems(wrap)
    header, expected = (read_header(p) for p in (path, other_path))
    assert (header.times, header.site, header.station) == (
        expected.times, expected.site, expected.station
    )  # fmt: skip
    (sweep,), (other,) = (read_sweeps([p], Format.ODIM) for p in (path, other_path))
    np.testing.assert_array_equal(sweep.dbz, other.dbz)


def test_gain_may_be_in_the_dataset(tmp_path):
    path = write_sweep(tmp_path / "a.h5")
    with h5py.File(path, "r+") as file:
        for key in ("gain", "offset", "nodata", "undetect"):
            file["dataset1/what"].attrs[key] = file["dataset1/data1/what"].attrs[key]
            del file["dataset1/data1/what"].attrs[key]
    (sweep,) = read_sweeps([path], Format.ODIM)
    assert (sweep.dbz[10:20, 10:20] == 30.0).all()


@pytest.mark.slow
@pytest.mark.parametrize("index", [0, 1])
def test_all_sweeps_are_as_xradar_reads_them(polar, helchteren, index):
    path = [polar / "T_PAGZ35_C_ENMI_20170421090837.hdf", helchteren[2]][index]
    with h5py.File(path) as file:
        count = sum(name.startswith("dataset") for name in file)
    for sweep in read_sweeps([path], Format.ODIM, cuts=3):
        matches = 0
        for number in range(count):
            with xr.open_dataset(path, engine="odim", group=f"sweep_{number}") as other:
                other = other.load()
            if abs(float(other["elevation"][0]) - sweep.elevation) > 1e-4:
                continue
            matches += 1
            np.testing.assert_allclose(other["azimuth"], sweep.azimuth, atol=1e-4)
            np.testing.assert_allclose(other["range"], sweep.range, atol=0.1)
            expected = other["DBZH"].values
            silent = np.isneginf(sweep.dbz)
            np.testing.assert_array_equal(np.isnan(expected), np.isnan(sweep.dbz))
            assert (expected[silent] == expected.min()).all()
            np.testing.assert_allclose(expected[~silent], sweep.dbz[~silent], atol=1e-4)
        assert matches == 1


def test_sweeps_of_a_broken_radar_and_of_velocity_are_skipped(tmp_path):
    path = write_sweep(tmp_path / "a.h5", elevations=(0.5, 1.5, 2.5))
    with h5py.File(path, "r+") as file:
        file["dataset1/data1/what"].attrs["quantity"] = np.bytes_("VRADH")
        file.create_group("dataset2/how").attrs["malfunc"] = np.bytes_("True")
    (sweep,) = read_sweeps([path], Format.ODIM)
    assert sweep.elevation == 2.5
    with h5py.File(path, "r+") as file:
        file.create_group("how").attrs["malfunc"] = np.bytes_("True")
    with pytest.raises(DataError, match="expected sweeps of a radar that works, found how/malfunc"):
        read_sweeps([path], Format.ODIM)


def test_two_data_of_one_quantity_are_refused(tmp_path):
    path = write_sweep(tmp_path / "a.h5")
    with h5py.File(path, "r+") as file:
        file.copy("dataset1/data1", file["dataset1"], "data2")
        file["dataset1/data2/what"].attrs["quantity"] = np.bytes_("TH")
        assert len(read_sweeps([path], Format.ODIM)) == 1
        file["dataset1/data2/what"].attrs["quantity"] = np.bytes_("DBZH")
    with pytest.raises(DataError, match="DBZH once, found it in /dataset1/data1 and /dataset1/d"):
        read_sweeps([path], Format.ODIM)


def test_whole_numbers_without_nodata_have_none(tmp_path):
    path = write_sweep(tmp_path / "a.h5")
    with h5py.File(path, "r+") as file:
        del file["dataset1/data1/what"].attrs["nodata"]
    with pytest.raises(DataError, match="expected nodata of /dataset1/data1, found none and 255"):
        read_sweeps([path], Format.ODIM)
    raw = np.full((RAYS, 40), 100, np.uint8)
    with h5py.File(path, "r+") as file:
        file["dataset1/data1/data"][:] = raw
    assert (read_sweeps([path], Format.ODIM)[0].dbz == 18).all()


@pytest.mark.parametrize(("cells", "refused"), [(3, False), (4, True)])
def test_an_impossible_number_is_missing_or_refused(tmp_path, cells, refused):
    raw = np.full((RAYS, 40), 100.0)
    raw[5, :cells] = 9999.0
    path = write_sweep(tmp_path / "a.h5", raw=raw)
    if refused:
        with pytest.raises(DataError, match=r"found 4967\.5 in many cells, a number for missing"):
            read_sweeps([path], Format.ODIM)
    else:
        (sweep,) = read_sweeps([path], Format.ODIM)
        np.testing.assert_array_equal(np.isnan(sweep.dbz), raw == 9999)


def test_rays_begin_at_astart(tmp_path):
    path = write_sweep(tmp_path / "a.h5")
    with h5py.File(path, "r+") as file:
        file["dataset1"].create_group("how").attrs["astart"] = -2.5
    (sweep,) = read_sweeps([path], Format.ODIM)
    np.testing.assert_allclose(sweep.azimuth, 5.0 * np.arange(72))
    assert sweep.dbz[10, 10] == 30.0


SAYS = "found how/simulated True; leave the file out"


@pytest.mark.parametrize(
    ("group", "key", "value", "sentence"),
    [
        ("dataset1/where", "rscale", -250.0, "gates in equal steps"),
        ("dataset1/where", "rscale", 0.25, "gates up to 1 km or farther"),
        ("dataset1/where", "rscale", 1e9, "gates in equal steps up to 1000 km"),
        ("dataset1/where", "rstart", 500.0, "within 50 km of the radar, found rstart 500 in km"),
        ("dataset1/data1/what", "gain", 0.0, "a gain of /dataset1/data1 other than 0"),
        ("dataset1/where", "elangle", np.nan, "'elangle' of /dataset1/where to be one number"),
        ("dataset1/where", "elangle", -40.0, "an elevation from -10 to 90"),
        ("dataset1/data1/what", "gain", np.array([1.0, 2.0]), "'gain' of .* to be one number"),
        ("dataset1/what", "starttime", b"25:00", "a time HHMMSS, found '20200207'"),
        ("dataset1/where", "nbins", 41, r"72 rays \(nrays\) of 41 gates \(nbins\), found"),
        ("what", "time", b"190000", "the first ray within 60 minutes of what/time"),
        ("how", "simulated", b"True", f"what a radar measured, {SAYS}"),
        ("dataset1/how", "simulated", b"True", f"what a radar measured, {SAYS}"),
    ],
)
def test_contradictory_attributes_of_a_volume_are_refused(tmp_path, group, key, value, sentence):
    path = write_sweep(tmp_path / "a.h5")
    with h5py.File(path, "r+") as file:
        file.require_group(group).attrs[key] = value
    with pytest.raises(DataError, match=rf"a\.h5: expected .*{sentence}"):
        read_sweeps([path], read_header(path).format)
