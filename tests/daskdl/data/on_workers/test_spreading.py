"""Spreading: data of the caller's in turn on the workers, and everything else left as it is."""

from __future__ import annotations

from typing import Any

import numpy as np
from distributed import Client, Future, wait

from daskdl.cluster.client import Cluster
from daskdl.data import SampleSet
from daskdl.data.lazy.from_tasks import FromTasks
from daskdl.data.on_workers.spreading import spread
from tests.daskdl.train.partitions import Counted


def doubled(batch: dict[str, Any]) -> dict[str, Any]:
    return {"x": 2 * batch["x"]}


def test_data_are_spread_over_the_workers(current: Client) -> None:
    samples = SampleSet.from_arrays(x=np.arange(26)).repartition(4).map_batches(doubled)
    held = spread(samples.recipes, Cluster(current), "prediction")
    assert all(isinstance(recipe, FromTasks) for recipe in held)
    futures = [future for recipe in held for future in recipe.futures]
    wait(futures)
    assert all(isinstance(future, Future) for future in futures)
    where = [current.who_has([f])[f.key] for f in futures]
    assert where[0] == where[2] != where[1] == where[3]
    assert [len(recipe) for recipe in held] == list(samples.lengths)
    found = np.concatenate([recipe.load().take(np.arange(6))["x"] for recipe in held])
    assert found.tolist() == [2 * n for a in (0, 6, 13, 19) for n in range(a, a + 6)]


def test_what_workers_read_themselves_stays_as_it_is(client: Client) -> None:
    recipes = [Counted(3, 0), Counted(4, 3)]
    assert spread(recipes, Cluster(client), "prediction") == recipes
