"""An open rain store is never read as another one, nor with damaged metadata."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from daskdl.errors import DataError
from daskdl.files import remove, replacing
from nowcast.rain import writer
from nowcast.rain.identity import OneStore, is_simulated, name_of
from nowcast.rain.store import consolidate, open_rain, write_zarr
from tests.nowcast.rain.series import frames
from tests.nowcast.rain.test_late_frames import new_store
from tests.nowcast.stores import moving_rain


@pytest.mark.slow
def test_another_store_in_its_place_is_refused(tmp_path):
    path = new_store(tmp_path / "rain.zarr", 0, 10, 20)
    with open_rain(path) as opened:
        assert float(opened["rain_rate"][1].max()) == 10
        sent = pickle.loads(pickle.dumps(opened))
        path.rename(tmp_path / "old")
        new_store(path, 0, 11, 22)
        for dataset in (opened, sent):
            with pytest.raises(DataError, match=r"store that was opened, of id .* in its place"):
                dataset["rain_rate"][1].max().compute()
    with open_rain(path) as opened:
        assert float(opened["rain_rate"][1].max()) == 11


def test_a_store_that_is_gone_is_no_missing_rain(tmp_path):
    path = new_store(tmp_path / "rain.zarr", 0, 10)
    with open_rain(path) as opened:
        remove(path)
        with pytest.raises(DataError, match="of id 'none' in its place"):
            opened["rain_rate"].max().compute()


def test_a_store_that_grows_is_the_same(tmp_path):
    path = new_store(tmp_path / "rain.zarr", 0, 20)
    with open_rain(path) as opened:
        writer.append(path, frames(10, 30))
        np.testing.assert_array_equal(opened["rain_rate"][:, 0, 0], [0, 20])


@pytest.mark.slow
def test_damaged_metadata_are_never_used(tmp_path):
    """Any one bit that changes is detected, unless it leaves the same JSON."""
    path = new_store(tmp_path / "rain.zarr", 0, 10) / "zarr.json"
    whole = path.read_bytes()
    read = 0
    for place in np.random.default_rng(0).choice(len(whole), 300, replace=False):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << (place % 7)
        path.write_bytes(damaged)
        try:
            OneStore(path.parent, read_only=True)._check()
            assert json.loads(damaged) == json.loads(whole)
            read += 1
        except DataError:
            pass
    assert read < 150
    path.write_bytes(whole.replace(b'"units": "mm h-1"', b'"units": "mm/h"', 1))
    with pytest.raises(DataError, match="the file is damaged"):
        open_rain(path.parent)
    consolidate(path.parent)  # from the metadata of the arrays
    open_rain(path.parent).close()


def test_stores_of_one_title_differ_by_grid_time_and_rain():
    other = moving_rain()
    other["rain_rate"][0, 9, 9] += 1
    later = moving_rain(10 * np.arange(24) + 60)
    made = [moving_rain(), other, later, moving_rain(latitude=51.0), moving_rain(spacing=500.0)]
    assert len({name_of(store) for store in made}) == len(made)


@pytest.mark.slow
def test_a_store_that_grows_or_is_written_anew_keeps_its_name(tmp_path):
    write_zarr(moving_rain(), tmp_path / "rain.zarr")
    with open_rain(tmp_path / "rain.zarr") as store:
        name = name_of(store)
    assert name.startswith("moving patches [")
    assert name == name_of(moving_rain(10 * np.arange(40)))


@pytest.mark.parametrize(
    ("attrs", "simulated"),
    [
        ({}, False),
        ({"simulated": 1}, True),
        ({"simulated": np.bool_(True)}, True),
        ({"simulated": "True"}, True),
        ({"simulated": 0}, False),
        ({"simulated": "no", "title": "what is not simulated"}, False),
        ({"simulated": "", "title": "Rain rate of Simulated radar"}, True),
        ({"source": "weather radar, ODIM_H5, station Simulated radar"}, True),
        ({"station": "Simulated radar"}, True),
        ({"source": "weather radar, ODIM_H5, station behel", "history": "simulated"}, False),
    ],
)
def test_an_attribute_decides_and_then_the_name(attrs, simulated):
    assert is_simulated(xr.Dataset(attrs=attrs)) is simulated
    assert is_simulated(xr.DataArray(0.0, attrs=attrs)) is simulated


def test_removing_nothing_is_no_error(tmp_path):
    remove(tmp_path / "none")


def test_a_folder_that_cannot_be_written_is_refused_before_the_work():
    with pytest.raises(OSError) as raised, replacing(Path("/proc/forecast.nc")):  # noqa: PT011
        pytest.fail("nothing is to be computed for it")
    assert str(raised.value.filename).startswith("/proc")
