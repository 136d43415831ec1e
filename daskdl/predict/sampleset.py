"""SampleSets: the graph of a prediction of one, a chunk for each partition."""

from __future__ import annotations

import operator
import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from daskdl.cluster.client import Cluster
from daskdl.cluster.current import current_client
from daskdl.compat.dask_graph import Task, TaskRef
from daskdl.data import SampleSet
from daskdl.data.nested import has, nested
from daskdl.data.on_workers.shards import spread
from daskdl.data.on_workers.tasks import graph_of
from daskdl.data.recipe import Recipe
from daskdl.errors import DataError
from daskdl.nn.core.arguments import each
from daskdl.predict import partitions
from daskdl.predict.kept import held_by_workers
from daskdl.predict.predictor import Predictor

if TYPE_CHECKING:
    import dask.array as da
    from dask.typing import Key


def of_samples(predictor: Predictor, samples: SampleSet) -> Any:
    """Return the results of a SampleSet's x as a dask Array, a chunk for each partition.

    Of a model with several results it is a tuple or dict of them. Where only loading tells how many
    samples there are, chunks have no length before either.
    """
    from daskdl.compat.dask_graph import HighLevelGraph

    one = samples.head(predictor.few)
    if not has(one, "x"):
        raise DataError(
            f"predict: expected samples with x, found {sorted(one)}"
            "; name the array x when the SampleSet is made"
        )
    inputs = nested(one, "x")
    predictor, result = predictor.tried(inputs)
    nothing = each(lambda a: a[:0].copy(), result)  # which holds no memory of the result
    several = isinstance(result, (tuple, dict))
    reference = held_by_workers(predictor)
    name = f"predict-{uuid.uuid4().hex}"
    zeros = () if several else (0,) * (result.ndim - 1)
    recipes = dict(enumerate(_spread(samples.known)))
    loads, behind = graph_of(recipes, lambda i: (f"load-{name}", i))
    # A collection keeps what it stands on.
    behind |= {f.key: f for recipe in recipes.values() for f in recipe.futures}
    tasks: dict[Key, Any] = {}
    for i in recipes:
        key = (name, i, *zeros)
        arguments = TaskRef((f"load-{name}", i)), _reference(reference), samples.functions
        tasks[key] = Task(key, partitions.of_samples, *arguments, i, nothing)
    layers = HighLevelGraph.from_collections(
        name,
        {**behind, **loads, **tasks},
        dependencies=[] if _is_future(reference) else [reference],
    )
    lengths = samples.lengths if samples.is_counted else (float("nan"),) * samples.partitions
    if not several:
        return _array(layers, name, lengths, nothing)
    parts = {}
    for part, meta in nothing.items() if isinstance(nothing, dict) else enumerate(nothing):
        part_name, zeros = f"{name}-{part}", (0,) * (meta.ndim - 1)
        chosen = {
            (part_name, i, *zeros): Task(
                (part_name, i, *zeros), operator.getitem, TaskRef((name, i)), part
            )
            for i in recipes
        }
        graph = HighLevelGraph(
            {**layers.layers, part_name: chosen}, {**layers.dependencies, part_name: {name}}
        )
        parts[part] = _array(graph, part_name, lengths, meta)
    return parts if isinstance(nothing, dict) else tuple(parts.values())


def _array(graph: Any, name: str, lengths: Sequence[float], meta: Any) -> da.Array:
    """Return the array of a graph, with a chunk of each length."""
    import dask.array as da

    return da.Array(graph, name, (tuple(lengths), *((n,) for n in meta.shape[1:])), meta=meta)


def _spread(recipes: Sequence[Recipe]) -> Sequence[Recipe]:
    client = current_client()
    return recipes if client is None else spread(recipes, Cluster(client), "prediction")


def _is_future(held: Any) -> bool:
    return isinstance(held, TaskRef)


def _reference(held: Any) -> TaskRef:
    """Return the TaskRef of a Future or a Delayed."""
    return held if _is_future(held) else TaskRef(held.key)
