"""Tasks: nothing is loaded twice, and what stands alone is one task."""

from __future__ import annotations

import dask
import dask.array as da
import numpy as np

from daskdl.data import SampleSet
from daskdl.data.on_workers.tasks import graph_of, on_each, stand_alone


def graph(samples):
    """Return the tasks of a set's partitions, and those behind them."""
    return graph_of(dict(enumerate(samples.recipes)), lambda i: ("load", i))


def test_recipes_that_stand_alone_are_a_task_each():
    samples = SampleSet.from_arrays(x=np.arange(9), partitions=3).map_batches(lambda b: b)
    tasks, behind = graph(samples)
    assert (list(tasks), behind) == ([("load", 0), ("load", 1), ("load", 2)], {})
    assert stand_alone(samples.recipes)


def test_what_several_need_is_loaded_once():
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
    held = dask.get({**behind, **tasks}, [("load", 2)])[0]
    assert held.arrays["x"].tolist() == [12, 14, 16]
    assert not any(r.is_lazy for r in SampleSet.from_arrays(x=np.arange(3)).recipes)
