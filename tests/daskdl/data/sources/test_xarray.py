"""xarray: samples along a named dimension, whatever the order of the others."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import xarray as xr
import zarr

from daskdl import nn
from daskdl.data import SampleSet
from daskdl.data.sources import zarr as stores
from daskdl.errors import DataError
from tests.daskdl.data.epochs import everything


@pytest.fixture
def data():
    return xr.Dataset(
        {
            "u": (("lat", "time"), np.arange(20.0).reshape(2, 10)),
            "v": (("time", "lat"), -np.arange(20.0).reshape(10, 2)),
            "rain": ("time", np.arange(10, dtype="i4")),
            "height": ("lat", [1.0, 2.0]),
        },
        coords={"time": np.arange(10) * 5},
    )


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["memory", "dask", "store", "lazy"])
def test_the_dimension_comes_first_and_variables_side_by_side(kind, data, tmp_path):
    source = data
    if kind == "dask":
        source = data.chunk(time=4, lat=1)
    elif kind != "memory":
        data["rain"].encoding = {"scale_factor": 0.5, "dtype": "f4"}
        data.to_zarr(tmp_path / "a.zarr", zarr_format=3, consolidated=False)
        path = tmp_path / "a.zarr"
        source = path if kind == "store" else xr.open_zarr(path, chunks=None, consolidated=False)
    samples = SampleSet.from_xarray(source, dim="time", x=["u", "v"], y="rain", t="time")
    columns = everything(samples.repartition(3))
    np.testing.assert_array_equal(columns["x"][..., 0], data["u"].values.T)
    np.testing.assert_array_equal(columns["x"][..., 1], data["v"].values)
    np.testing.assert_array_equal(columns["y"], np.arange(10))  # as xarray decodes it
    np.testing.assert_array_equal(columns["t"], np.arange(10) * 5)
    assert samples.recipes[0].in_memory == (kind == "memory")


def test_a_data_array_is_x(data):
    assert SampleSet.from_xarray(data["u"], dim="time").schema == {"x": ((2,), np.float64)}


def test_variables_that_do_not_fit_are_refused(data):
    with pytest.raises(DataError, match=r"expected height along 'time', found it over \('lat',"):
        SampleSet.from_xarray(data, dim="time", x="height")
    with pytest.raises(DataError, match="expected a variable 'w', found"):
        SampleSet.from_xarray(data, dim="time", x="w")
    with pytest.raises(DataError, match="expected the variables to use, such as x='t2m'"):
        SampleSet.from_xarray(data, dim="time")
    with pytest.raises(DataError, match="expected a path, a Dataset or a DataArray, found list"):
        SampleSet.from_xarray([1], dim="time", x="u")


def test_a_fault_of_xarrays_is_not_blamed_on_the_store(data, tmp_path, monkeypatch):
    def faulty(*args, **options):
        raise TypeError("open_zarr() got an unexpected keyword argument")

    data.to_zarr(tmp_path / "a.zarr", zarr_format=3, consolidated=False)
    monkeypatch.setattr(xr, "open_zarr", faulty)
    with pytest.raises(DataError, match="may not be the store's fault: TypeError: open_zarr"):
        SampleSet.from_xarray(tmp_path / "a.zarr", dim="time", x="u")


@pytest.fixture
def store(tmp_path):
    group = zarr.open_group(tmp_path / "a.zarr", mode="w")
    group["x"] = np.arange(20.0).reshape(10, 2)
    for name, n in {"y": 10, "z": 9}.items():
        array = group.create_array(name, shape=(n,), chunks=(4,), dtype="i8")
        array[:] = np.arange(n)
    return tmp_path / "a.zarr"


def test_a_partition_has_whole_chunks(store, monkeypatch):
    assert SampleSet.from_zarr(store, y="y").lengths == (10,)
    monkeypatch.setattr(stores, "PARTITION_BYTES", 40)
    samples = SampleSet.from_zarr(store, y="y", x="x")
    assert (samples.lengths, samples.nbytes) == ((4, 4, 2), 240)
    assert everything(samples.repartition(4))["x"][:, 1].tolist() == [*range(1, 20, 2)]
    assert len(pickle.dumps(samples)) < 3000


def test_missing_arrays_are_named(store):
    with pytest.raises(DataError, match=r"none called \['q'\]; there are \['x', 'y', 'z'\]"):
        SampleSet.from_zarr(store, x="q")
    with pytest.raises(DataError, match=r"common length .*, found {'x': 10, 'y': 9}"):
        SampleSet.from_zarr(store, x="x", y="z")
    with pytest.raises(DataError, match="expected a zarr group, found none"):
        SampleSet.from_zarr(store / "nothing", x="x")


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize(
    ("encoding", "key"),
    [
        ({"dtype": "i2", "scale_factor": 0.5, "_FillValue": -9}, "scale_factor 0.5"),
        ({"dtype": "i2", "add_offset": 3.0, "_FillValue": -9}, "add_offset 3.0"),
        ({"dtype": "f4", "missing_value": np.float32(-9)}, "missing_value -9.0"),
        ({"dtype": "f4", "_FillValue": np.float32(np.nan)}, None),
        ({"dtype": "f4"}, None),
    ],
)
def test_packed_numbers_of_zarr_are_for_xarray(tmp_path, version, encoding, key):
    data = xr.Dataset({"x": ("t", np.array([1.0, 2.0, np.nan, 4.0]))})
    data["x"].encoding = encoding
    data.to_zarr(tmp_path / "a.zarr", zarr_format=version, consolidated=False)
    if key:
        with pytest.raises(DataError, match=f"found the attribute {key}; open it with xarray"):
            SampleSet.from_zarr(tmp_path / "a.zarr", x="x")
        if "missing" not in key:
            with pytest.raises(DataError, match=f"x: expected .* the attribute {key}"):
                SampleSet.from_windows({"x": zarr.open(tmp_path / "a.zarr")["x"]}, {0: 2})
    else:
        x = SampleSet.from_zarr(tmp_path / "a.zarr", x="x").head(4)["x"]
        np.testing.assert_array_equal(x, [1, 2, np.nan, 4])


def test_a_group_of_zarr_is_no_array(tmp_path):
    zarr.open_group(tmp_path / "a.zarr").create_group("sub").create_array("x", shape=4, dtype="f4")
    with pytest.raises(
        DataError, match=r"a\.zarr, sub: expected an array, found a group of \['x'\]"
    ):
        SampleSet.from_zarr(tmp_path / "a.zarr", x="sub")
    assert len(SampleSet.from_zarr(tmp_path / "a.zarr", x="sub/x")) == 4


def test_a_scene_that_cf_packs_is_for_xarray(tmp_path):
    scene = zarr.create_array(tmp_path / "a.zarr", shape=(64, 64, 3), dtype="f4", fill_value=0)
    scene.attrs["scale_factor"] = 1.0
    net = nn.Sequential(nn.Conv2d(3, 2, 3, padding=1))
    assert net.predict(scene, tile={0: 32, 1: 32}).shape == (64, 64, 2)
    scene.attrs["scale_factor"] = 0.5
    with pytest.raises(DataError, match=r"predict, tile: expected .*scale_factor 0\.5; open it"):
        net.predict(scene, tile={0: 32, 1: 32})
