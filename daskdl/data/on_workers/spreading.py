"""Spreading: samples that lie in the caller's memory, put on the workers for tasks to use."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from daskdl.cluster.client import Cluster
from daskdl.data.lazy.from_tasks import FromTasks
from daskdl.data.partition import Partition
from daskdl.data.recipe import Recipe


def spread(recipes: Sequence[Recipe], cluster: Cluster, what: str) -> list[Recipe]:
    """Return recipes of which those that carry their data lie on the workers in turn.

    Parameters
    ----------
    recipes : sequence of Recipe
    cluster : Cluster
    what : str
        That is about to be done, for errors.
    """
    result = list(recipes)
    here = [i for i, recipe in enumerate(recipes) if recipe.in_memory]
    if not here:
        return result
    workers = sorted(cluster.workers(what))
    futures = cluster.send_each(
        f"samples-{uuid.uuid4().hex}",
        [recipes[i].for_sending() for i in here],
        [workers[k % len(workers)] for k in range(len(here))],
    )
    for i, future in zip(here, futures, strict=True):
        length = len(recipes[i]) if recipes[i].is_counted else None
        nbytes = recipes[i].nbytes
        result[i] = FromTasks({future.key: future}, (future.key,), _loaded, length, nbytes)
    return result


def _loaded(recipe: Recipe) -> Partition:
    return recipe.load()
