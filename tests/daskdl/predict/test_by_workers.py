"""predict(client=...): workers predict samples in memory here, and lazy ones."""

from __future__ import annotations

import os
import signal
from functools import partial
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from distributed import get_worker

from daskdl import nn
from daskdl.cluster import connect
from daskdl.cluster.starting.workers import TTL, patience
from daskdl.data import SampleSet
from daskdl.errors import SettingsError
from daskdl.nn import Module
from daskdl.tensor import Tensor
from tests.daskdl.predict.networks import expected, inputs, same, small
from tests.daskdl.train.runs import first

X = inputs()


class Two(Module):
    """Adds its two inputs."""

    def forward(self, a: Any, b: Any) -> Any:
        return a + b


@pytest.mark.slow
def test_numpy_comes_back_as_numpy_from_the_workers(client):
    result = small().predict(X, client=client)
    assert isinstance(result, np.ndarray)
    same(result)
    np.testing.assert_array_equal(small().predict_class(X, client=client), expected().argmax(1))
    assert small().embed(X, "layers.1", client=client).shape == (len(X), 8)
    same(small().predict(X[:1], client=client), expected()[:1])
    assert small().predict(X[:0], client=client).shape == (0, 2)


def test_the_workers_compute_it(client):
    class Where(Module):
        def forward(self, x):
            try:
                port = float(get_worker().address.rsplit(":", 1)[1])
            except ValueError:
                port = 0.0
            return Tensor(np.full((len(x), 1), port, np.float32))

    ports = np.unique(Where().predict(X, client=client))
    # The workers are asked, as the client may not know all of them yet.
    assert set(ports) == {float(worker.rsplit(":", 1)[1]) for worker in client.run(int)}
    assert np.unique(Where().predict(X)) == [0.0]
    assert np.unique(Where().predict(X, client=False)) == [0.0]


@pytest.mark.slow
def test_other_kinds_in_memory(client):
    frame = pd.DataFrame(X, index=np.arange(len(X))[::-1])
    rows = small().predict(frame, client=client)
    assert rows.index.equals(frame.index)
    same(rows.to_numpy())
    image = xr.DataArray(X, dims=("time", "of"), coords={"time": np.arange(len(X)) * 2})
    result = small().predict(image, client=client, dims=["score"])
    assert (result.dims, result.chunks) == (("time", "score"), None)
    np.testing.assert_array_equal(result["time"], image["time"])
    same(result)
    same(small().predict(image.to_dataset(name="x"), client=client)["prediction"])
    same(Two().predict({"a": X, "b": X}, client=client), 2 * X)


def test_lazy_samples_stay_lazy_and_are_computed_by_that_client(client):
    for samples in (da.from_array(X, chunks=(9, -1)), SampleSet.from_arrays(x=X, partitions=3)):
        result = small().predict(samples, client=client)
        same(client.compute(result).result())
        same(small().predict(samples, client=False).compute(scheduler="sync"))


def test_other_objects_than_clients_are_refused(client):
    with pytest.raises(SettingsError, match=r"expected a distributed.Client, found 'tcp://a:1'"):
        small().predict(X, client="tcp://a:1")
    with pytest.raises(SettingsError, match="found True"):
        small().predict(X, client=True)


def test_a_setting_of_the_users_own_is_kept():
    assert patience() == {TTL: "1 minute"}
    for timeout in ("20 s", None):
        with dask.config.set({TTL: timeout}):
            assert patience() == {}


def _stop_once(x: np.ndarray[Any, Any], marker: Path) -> np.ndarray[Any, Any]:
    """Return x; the first process that sees the number 300 is stopped."""
    if 300 in x and first(marker):
        os.kill(os.getpid(), signal.SIGSTOP)
    return x


@pytest.mark.long  # a shorter TTL would also end workers that are slow on a busy machine
@pytest.mark.timeout(600)
def test_results_come_although_a_worker_is_stopped_in_its_task(tmp_path):
    x = np.arange(512, dtype=np.float32).reshape(256, 2)
    model = nn.Linear(2, 3, seed=0)
    stopping = partial(_stop_once, marker=tmp_path / "stopped")
    with dask.config.set({TTL: "20 s"}), connect("local", workers=2) as client:
        lazy = da.from_array(x, chunks=(32, 2)).map_blocks(stopping, dtype=x.dtype)
        result = client.compute(model.predict(lazy)).result(300)
    assert (tmp_path / "stopped").exists()
    np.testing.assert_array_equal(result, model.predict(x))
