"""Shards: the loaded partitions of a SampleSet on the workers, and where they lie."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from operator import methodcaller
from typing import TYPE_CHECKING, Any

from daskdl.cluster.client import Cluster
from daskdl.cluster.failures import naming
from daskdl.cluster.tasks import Place, assign
from daskdl.compat.dask import Task, TaskRef
from daskdl.data.lazy.from_tasks import FromTasks
from daskdl.data.on_workers.tasks import graph_of, run
from daskdl.data.partition import Partition
from daskdl.data.recipe import Recipe

if TYPE_CHECKING:
    from dask.typing import Key
    from distributed import Future

    from daskdl.data.samples import SampleSet


def load_shard(source: Any, shard: int, *inputs: Partition) -> Partition:
    """Load a shard's recipe, or make the shard of loaded inputs; errors name the shard."""
    with naming(f"shard {shard}", ": its samples cannot be loaded"):
        partition: Partition = run(source, shard, *inputs)
        return partition


class Shards:
    """The loaded partitions of a SampleSet and where they lie; ``name`` is a part of their keys."""

    def __init__(self, cluster: Cluster, name: str, samples: SampleSet) -> None:
        self._cluster, self._name, self._samples = cluster, name, samples
        self._futures: dict[int, Future] = {}
        self._recipes: dict[int, Future] = {}
        self._version = 0

    @property
    def keys(self) -> list[Key]:
        """Key of every shard."""
        return [self._futures[s].key for s in range(self._samples.partitions)]

    def placed(self, workers: dict[str, int]) -> Place:
        """Load missing shards, move badly placed ones, and return the place of each."""
        n = self._samples.partitions
        holders = self._cluster.holders([self._future_of(s) for s in range(n)], workers)
        owners = assign(holders, workers)
        moving = [s for s in range(n) if s not in self._futures or owners[s] != holders[s]]
        place = Place(owners)
        if moving:
            self._load(moving, place)
        return place

    def wait(self, purpose: str) -> None:
        """Wait until all are loaded; raise the first error."""
        self._cluster.wait([self._futures[s] for s in range(self._samples.partitions)], purpose)

    def forget(self) -> None:
        """Let the workers forget the shards."""
        self._futures.clear()
        self._recipes.clear()

    def _future_of(self, s: int) -> Future | None:
        """Return the future of the shard, or of a part of it that is on a worker."""
        return self._futures.get(s) or next(iter(self._samples.recipes[s].futures), None)

    def _load(self, shards: Sequence[int], place: Place) -> None:
        self._version += 1
        graph: dict[Key, Any] = {}
        lazy: dict[int, Recipe] = {}
        for s in shards:
            self._futures.pop(s, None)
            recipe = self._samples.recipes[s]
            if recipe.in_memory:
                # Data must not pass through the scheduler.
                name = f"samples-{self._name}-{self._version}-{s}"
                self._recipes[s] = self._cluster.send(
                    name, recipe.for_sending(), place.addresses[s]
                )
                key = self._key(s)
                graph[key] = Task(key, load_shard, TaskRef(self._recipes[s].key), s)
            else:
                lazy[s] = recipe
        loads, behind = graph_of(lazy, self._key, load_shard)
        graph |= loads
        keys = list(graph)
        futures = self._cluster.submit(graph, keys, place, behind)
        for key, future in zip(keys, futures, strict=True):
            self._futures[int(key[-1])] = future

    def _key(self, s: int) -> tuple[str, int, int]:
        return f"load-{self._name}", self._version, s


def spread(recipes: Sequence[Recipe], cluster: Cluster, purpose: str) -> list[Recipe]:
    """Return recipes; the data of those in memory are distributed to the workers in turn.

    ``purpose`` names the operation in errors.
    """
    result = list(recipes)
    here = [i for i, recipe in enumerate(recipes) if recipe.in_memory]
    if not here:
        return result
    workers = sorted(cluster.workers(purpose))
    futures = cluster.send_each(
        f"samples-{uuid.uuid4().hex}",
        [recipes[i].for_sending() for i in here],
        [workers[k % len(workers)] for k in range(len(here))],
    )
    for i, future in zip(here, futures, strict=True):
        length = len(recipes[i]) if recipes[i].is_counted else None
        nbytes = recipes[i].nbytes
        result[i] = FromTasks(
            {future.key: future}, (future.key,), methodcaller("load"), length, nbytes
        )
    return result
