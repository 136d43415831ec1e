"""Rain stores: opening with clear errors, the time step, and atomic writes."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from daskdl.errors import DataError
from nowcast.rain.grid import Grid
from nowcast.rain.identity import path_of
from nowcast.rain.store import open_rain, time_step, write_dataset, write_netcdf, write_zarr
from tests.nowcast.stores import rain_of

GRID = Grid.around(51.0, 5.0, size=(6, 8), spacing=1000.0)


def dataset(minutes=(0, 5, 10)) -> xr.Dataset:
    rain = np.arange(len(minutes) * 48, dtype=np.float32).reshape(-1, 6, 8)
    rain[:, 0, 0] = np.nan
    return rain_of(rain, minutes, GRID, np.datetime64("2020-02-07T13:00", "ns"))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rain.zarr", "rain.nc"])
def test_a_written_store_is_read_back(tmp_path, name):
    before = dataset()
    write_dataset(before, tmp_path / name)
    with open_rain(tmp_path / name) as after:
        assert after["rain_rate"].dtype == np.float32
        assert after["rain_rate"].chunks == ((1, 1, 1), (6,), (8,))
        xr.testing.assert_equal(after.load(), before)
        assert after["rain_rate"].attrs["units"] == "mm h-1"
        assert after["crs"].attrs["grid_mapping_name"] == "azimuthal_equidistant"
        assert after.attrs["Conventions"] == "CF-1.11"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rain.zarr", "rain.nc"])
def test_a_read_dataset_can_be_written_again(tmp_path, name):
    write_dataset(dataset(), tmp_path / "first.zarr")
    with open_rain(tmp_path / "first.zarr") as first:
        write_dataset(first.isel(time=slice(1, None)), tmp_path / name)
    with open_rain(tmp_path / name) as second:
        assert second.sizes["time"] == 2


@pytest.mark.slow
@pytest.mark.parametrize("write", [write_zarr, write_netcdf])
def test_a_failed_write_leaves_only_the_old_store(tmp_path, write):
    path = tmp_path / "rain"
    write(dataset(), path)
    broken = dataset().assign_attrs(bad=object())
    with pytest.raises((TypeError, ValueError)):
        write(broken, path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["rain"]
    if write is write_zarr:
        with open_rain(path) as after:
            xr.testing.assert_equal(after.load(), dataset())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rain.zarr", "rain.nc"])
def test_frames_that_came_late_are_put_in_order(tmp_path, name):
    write_dataset(dataset((10, 0, 25, 5)), tmp_path / name)
    with open_rain(tmp_path / name) as after:
        assert after["rain_rate"].chunks == ((1,) * 4, (6,), (8,))
        assert path_of(after) == str(tmp_path / name)
        xr.testing.assert_equal(after.load(), dataset((10, 0, 25, 5)).sortby("time"))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rain_rate", "time", "latitude", "x"])
def test_a_damaged_chunk_is_never_read_as_other_numbers(tmp_path, name):
    path = tmp_path / "rain.zarr"
    write_zarr(dataset((0, 5)), path)
    chunk = next(entry for entry in (path / name / "c").rglob("*") if entry.is_file())
    whole = chunk.read_bytes()
    for place in range(0, len(whole), 7):
        damaged = bytearray(whole)
        damaged[place] ^= 1
        chunk.write_bytes(damaged)
        with pytest.raises((DataError, ValueError), match="checksum"), open_rain(path) as rain:
            rain.load()


def test_paths_without_a_store_are_named(tmp_path):
    (tmp_path / "rain.zarr").mkdir()
    (tmp_path / "text.nc").write_text("rain")
    for name, more in (("rain.zarr", ""), ("text.nc", ""), ("none.zarr", ", found nothing there")):
        with pytest.raises(DataError, match=f"{name}: expected a rain store{more}"):
            open_rain(tmp_path / name)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda ds: ds.rename(rain_rate="rain"), "expected rain_rate .time, y, x., found no such"),
        (lambda ds: ds.isel(time=0), "found dimensions"),
        (lambda ds: ds.drop_vars("crs"), "expected a variable 'crs'"),
        (
            lambda ds: ds.isel(time=[1, 0, 1]),
            "a frame of each time, found 2 of 2020-02-07T13:05:00",
        ),
        (lambda ds: ds.isel(time=slice(0, 0)), "at least one time"),
        (
            lambda ds: ds.assign(rain_rate=ds["rain_rate"].assign_attrs(units="m s-1")),
            "found units 'm s-1'",
        ),
    ],
)
def test_a_store_of_another_layout_is_refused(tmp_path, change, sentence):
    write_zarr(change(dataset()), tmp_path / "rain.zarr")
    with pytest.raises(DataError, match=sentence):
        open_rain(tmp_path / "rain.zarr")


def test_the_step_is_the_most_frequent_one():
    assert time_step(dataset((0, 5, 10, 30, 35))) == np.timedelta64(5, "m")
    with pytest.raises(DataError, match="at least two times"):
        time_step(dataset((0,)))


def test_unequal_steps_are_refused_and_named(tmp_path):
    write_zarr(dataset((0, 5, 11, 15, 21, 26)), tmp_path / "rain.zarr")
    sentence = rf"{tmp_path / 'rain.zarr'}: expected frames in equal steps, found steps of 5, 6, 4 "
    with open_rain(tmp_path / "rain.zarr") as rain, pytest.raises(DataError, match=sentence):
        time_step(rain)
