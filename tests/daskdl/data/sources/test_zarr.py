"""Stores: whole chunks of zarr arrays, read where they are used."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import zarr

from daskdl.data import SampleSet
from daskdl.data.sources import zarr as stores
from daskdl.errors import DataError
from tests.daskdl.data.epochs import everything


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


def test_what_is_not_there_is_said(store):
    with pytest.raises(DataError, match=r"none called \['q'\]; there are \['x', 'y', 'z'\]"):
        SampleSet.from_zarr(store, x="q")
    with pytest.raises(DataError, match=r"common length .*, found {'x': 10, 'y': 9}"):
        SampleSet.from_zarr(store, x="x", y="z")
    with pytest.raises(DataError, match="expected a zarr group, found none"):
        SampleSet.from_zarr(store / "nothing", x="x")
