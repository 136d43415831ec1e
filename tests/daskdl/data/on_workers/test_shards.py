"""Samples on workers: tasks, spreading, shards, and another cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
import xarray as xr
from distributed import Client, Future, wait

from daskdl.cluster.client import Cluster
from daskdl.cluster.failures import TaskError
from daskdl.data import SampleSet
from daskdl.data.lazy.from_tasks import FromTasks
from daskdl.data.on_workers.shards import Shards, spread
from daskdl.data.on_workers.tasks import graph_of, on_each, stand_alone
from daskdl.errors import SettingsError
from daskdl.nn import Linear, MSELoss
from daskdl.optim import SGD
from daskdl.train import Trainer
from tests.daskdl.clusters import small_client
from tests.daskdl.train.jobs import Counted
from tests.daskdl.train.runs import problem


def counts(client: Client, shards: Shards) -> dict[str, int]:
    """Return how many of the shards each worker holds."""
    where = client.who_has()
    workers = [w for key in shards.keys for w in where[key]]
    return {w: workers.count(w) for w in workers}


def test_shards_are_loaded_once_where_placed(client_of: Callable[..., Client]) -> None:
    client = client_of(2)
    cluster = Cluster(client)
    shards = Shards(cluster, "test-once", problem())
    place = shards.placed(cluster.workers("a test"))
    shards.wait("a test")
    keys = shards.keys
    assert counts(client, shards) == {w: place.addresses.count(w) for w in place.addresses}
    assert shards.placed(cluster.workers("a test")).addresses == place.addresses
    assert shards.keys == keys


def test_shards_move_to_the_workers_that_are_left(client_of: Callable[..., Client]) -> None:
    client = client_of(2)
    cluster = Cluster(client)
    shards = Shards(cluster, "test-move", problem())
    workers = cluster.workers("a test")
    shards.placed(workers)
    shards.wait("a test")
    one = min(workers)
    assert set(shards.placed({one: 1}).addresses) == {one}
    shards.wait("a test")
    assert counts(client, shards) == {one: 4}
    shards.forget()
    with pytest.raises(KeyError):
        shards.keys  # noqa: B018


def test_waiting_raises_what_went_wrong(client_of: Callable[..., Client], tmp_path) -> None:
    cluster = Cluster(client_of(2))
    data = xr.Dataset({"r": (("time", "y"), np.ones((9, 4), np.float32))})
    data.to_zarr(tmp_path / "r.zarr", consolidated=False)
    stored = SampleSet.from_xarray(tmp_path / "r.zarr", dim="time", x="r", partitions=2)
    (tmp_path / "r.zarr").rename(tmp_path / "moved")
    shards = Shards(cluster, "test-wrong", stored)
    shards.placed(cluster.workers("a test"))
    with pytest.raises(TaskError, match=r"shard \d at worker \S+: its samples cannot be loaded"):
        shards.wait("a test")


def test_samples_of_another_cluster_are_refused_before_any_task(client: Client) -> None:
    x = np.arange(8, dtype=np.float32)[:, None]
    trainer = Trainer(Linear(1, 1, seed=0), MSELoss(), SGD(0.01))
    with small_client() as holder:
        persisted = SampleSet.from_arrays(x=x, y=x, partitions=2).persist(holder)
        for use in (trainer.evaluate, lambda s, client: trainer.fit(s, epochs=1, client=client)):
            with pytest.raises(SettingsError, match=r"at tcp.* on the one at inproc"):
                use(persisted, client=client)
        with Client(client.scheduler.address, set_as_default=False) as again:
            same = SampleSet.from_arrays(x=x, y=x, partitions=2).persist(again)
            assert trainer.evaluate(same, client=client) == trainer.evaluate(same, client=False)
    with pytest.raises(SettingsError, match=r"a client that was closed.*persist\(\) them again"):
        trainer.evaluate(persisted, client=client)


def doubled(batch: dict[str, Any]) -> dict[str, Any]:
    return {"x": 2 * batch["x"]}


def test_data_are_spread_over_the_workers(current: Client) -> None:
    samples = SampleSet.from_arrays(x=np.arange(26)).repartition(4).map_batches(doubled)
    recipes = spread(samples.recipes, Cluster(current), "prediction")
    assert all(isinstance(recipe, FromTasks) for recipe in recipes)
    futures = [future for recipe in recipes for future in recipe.futures]
    wait(futures)
    assert all(isinstance(future, Future) for future in futures)
    where = [current.who_has([f])[f.key] for f in futures]
    assert where[0] == where[2] != where[1] == where[3]
    assert [len(recipe) for recipe in recipes] == list(samples.lengths)
    values = np.concatenate([recipe.load().take(np.arange(6))["x"] for recipe in recipes])
    assert values.tolist() == [2 * n for a in (0, 6, 13, 19) for n in range(a, a + 6)]


def test_recipes_that_workers_read_are_not_spread(client: Client) -> None:
    recipes = [Counted(3, 0), Counted(4, 3)]
    assert spread(recipes, Cluster(client), "prediction") == recipes


def graph(samples):
    """Return the tasks of a set's partitions, and the tasks that these need."""
    return graph_of(dict(enumerate(samples.recipes)), lambda i: ("load", i))


def test_recipes_that_stand_alone_are_a_task_each():
    samples = SampleSet.from_arrays(x=np.arange(9), partitions=3).map_batches(lambda b: b)
    tasks, behind = graph(samples)
    assert (list(tasks), behind) == ([("load", 0), ("load", 1), ("load", 2)], {})
    assert stand_alone(samples.recipes)


def test_partitions_that_several_need_are_loaded_once():
    loaded = []
    samples = SampleSet.from_arrays(x=np.arange(9), partitions=3)
    mixed = samples.map_batches(lambda b: loaded.append(1) or b).shuffle(1)
    assert not stand_alone(mixed.recipes)
    sizes = on_each(mixed.recipes, lambda partition, i: (i, len(partition)))
    assert sizes == [(0, 3), (1, 3), (2, 3)]
    assert len(loaded) == 3


def test_tasks_of_dask_stay_tasks():
    array = da.arange(9, chunks=3) * 2
    samples = SampleSet.from_arrays(x=array)
    tasks, behind = graph(samples)
    assert set(dict(dask.optimize(array)[0].__dask_graph__())) == set(behind)
    assert all(recipe.is_lazy for recipe in samples.recipes)
    partition = dask.get({**behind, **tasks}, [("load", 2)])[0]
    assert partition.arrays["x"].tolist() == [12, 14, 16]
    assert not any(r.is_lazy for r in SampleSet.from_arrays(x=np.arange(3)).recipes)
