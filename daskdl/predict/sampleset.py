"""SampleSets: the graph of a prediction of one, a chunk for each partition."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from daskdl.cluster.client import Cluster
from daskdl.cluster.current import current_client
from daskdl.compat.dask_graph import Task, TaskRef
from daskdl.data import SampleSet
from daskdl.data.nested import has, nested
from daskdl.data.on_workers.spreading import spread
from daskdl.data.on_workers.tasks import graph_of
from daskdl.data.recipe import Recipe
from daskdl.errors import DataError
from daskdl.predict import partitions
from daskdl.predict.broadcast import held_by_workers
from daskdl.predict.first import first
from daskdl.predict.predictor import Predictor

if TYPE_CHECKING:
    import dask.array as da
    from dask.typing import Key


def of_samples(predictor: Predictor, samples: SampleSet) -> da.Array:
    """Return the results of a SampleSet's x as a dask Array, a chunk for each partition.

    Where only loading tells how many samples there are, chunks have no length before either.
    """
    import dask.array as da

    from daskdl.compat.dask_graph import HighLevelGraph

    one = samples.head(1)
    if not has(one, "x"):
        raise DataError(
            f"predict: expected samples with x, found {sorted(one)}"
            "; name the array x when the SampleSet is made"
        )
    inputs = nested(one, "x")
    predictor, result = predictor.tried(inputs)
    result = partitions.only(result)
    nothing = result[:0].copy()  # which holds no memory of the result
    known = {0: first(inputs, result)}
    held = held_by_workers(predictor)
    name, zeros = f"predict-{uuid.uuid4().hex}", (0,) * (result.ndim - 1)
    recipes = dict(enumerate(_spread(samples.known)))
    loads, behind = graph_of(recipes, lambda i: (f"load-{name}", i))
    # A collection keeps what it stands on.
    behind |= {f.key: f for recipe in recipes.values() for f in recipe.futures}
    tasks: dict[Key, Any] = {}
    for i in recipes:
        key = (name, i, *zeros)
        given = TaskRef((f"load-{name}", i)), _reference(held), samples.functions
        tasks[key] = Task(key, partitions.of_samples, *given, i, known.get(i), nothing)
    layers = HighLevelGraph.from_collections(
        name, {**behind, **loads, **tasks}, dependencies=[] if _is_future(held) else [held]
    )
    lengths = samples.lengths if samples.is_counted else (float("nan"),) * samples.partitions
    chunks = (lengths, *((n,) for n in result.shape[1:]))
    return da.Array(layers, name, chunks, meta=nothing)


def _spread(recipes: Sequence[Recipe]) -> Sequence[Recipe]:
    client = current_client()
    return recipes if client is None else spread(recipes, Cluster(client), "prediction")


def _is_future(held: Any) -> bool:
    return isinstance(held, TaskRef)


def _reference(held: Any) -> TaskRef:
    """Return the TaskRef of a Future or a Delayed."""
    return held if _is_future(held) else TaskRef(held.key)
