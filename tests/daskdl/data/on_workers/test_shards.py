from __future__ import annotations

from collections.abc import Callable

import pytest
from distributed import Client

from daskdl.cluster.client import Cluster
from daskdl.cluster.failures import TaskError
from daskdl.data.on_workers.shards import Shards
from tests.daskdl.train.runs import problem


def held(client: Client, shards: Shards) -> dict[str, int]:
    """Return how many of the shards each worker holds."""
    where = client.who_has()
    workers = [w for key in shards.keys for w in where[key]]
    return {w: workers.count(w) for w in workers}


def test_shards_are_loaded_once_and_lie_where_it_is_said(client_of: Callable[..., Client]) -> None:
    client = client_of(2)
    cluster = Cluster(client)
    shards = Shards(cluster, "test-once", problem())
    place = shards.placed(cluster.workers("a test"))
    shards.wait("a test")
    keys = shards.keys
    assert held(client, shards) == {w: place.addresses.count(w) for w in place.addresses}
    assert shards.placed(cluster.workers("a test")).addresses == place.addresses
    assert shards.keys == keys


def test_shards_move_to_the_workers_there_are(client_of: Callable[..., Client]) -> None:
    client = client_of(2)
    cluster = Cluster(client)
    shards = Shards(cluster, "test-move", problem())
    workers = cluster.workers("a test")
    shards.placed(workers)
    shards.wait("a test")
    one = min(workers)
    assert set(shards.placed({one: 1}).addresses) == {one}
    shards.wait("a test")
    assert held(client, shards) == {one: 4}
    shards.forget()
    with pytest.raises(KeyError):
        shards.keys  # noqa: B018


def test_waiting_raises_what_went_wrong(client_of: Callable[..., Client], tmp_path) -> None:
    import numpy as np
    import xarray as xr

    from daskdl.data import SampleSet

    cluster = Cluster(client_of(2))
    data = xr.Dataset({"r": (("time", "y"), np.ones((9, 4), np.float32))})
    data.to_zarr(tmp_path / "r.zarr", consolidated=False)
    stored = SampleSet.from_xarray(tmp_path / "r.zarr", dim="time", x="r", partitions=2)
    (tmp_path / "r.zarr").rename(tmp_path / "moved")
    shards = Shards(cluster, "test-wrong", stored)
    shards.placed(cluster.workers("a test"))
    with pytest.raises(TaskError, match=r"shard \d at worker \S+: its samples cannot be loaded"):
        shards.wait("a test")
