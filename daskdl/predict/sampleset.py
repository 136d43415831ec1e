"""Prediction of SampleSets, and of samples in memory by the workers of a client."""

from __future__ import annotations

import operator
import uuid
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from daskdl.cluster.attempts import until_done
from daskdl.cluster.client import Cluster
from daskdl.cluster.current import current_client
from daskdl.compat.dask import Task, TaskRef
from daskdl.data import SampleSet
from daskdl.data.nested import has, nested
from daskdl.data.on_workers.shards import spread
from daskdl.data.on_workers.tasks import graph_of
from daskdl.data.recipe import Recipe
from daskdl.errors import DataError
from daskdl.nn.core.arguments import each, parts_of
from daskdl.predict import partitions
from daskdl.predict.kept import for_tasks
from daskdl.predict.predictor import Predictor, prepared, rows

if TYPE_CHECKING:
    import dask.array as da
    from dask.typing import Key

#: Most bytes of samples that are sent together.
LARGEST_PART = 64_000_000


def of_samples(predictor: Predictor, samples: SampleSet) -> Any:
    """Return the results of a SampleSet's x as a dask Array, a chunk for each partition.

    For a model with several results it is a tuple or dict of arrays. If the number of samples is
    known only after loading, the chunks' lengths are unknown.
    """
    from daskdl.compat.dask import HighLevelGraph

    one = samples.head(predictor.few)
    if not has(one, "x"):
        raise DataError(
            f"predict: expected samples with x, found {sorted(one)}"
            "; name the array x when the SampleSet is made"
        )
    inputs = nested(one, "x")
    predictor, result = predictor.tried(inputs)
    nothing = each(lambda a: a[:0].copy(), result)  # a copy does not keep the result in memory
    several = isinstance(result, (tuple, dict))
    reference, sources = for_tasks(predictor)
    name = f"predict-{uuid.uuid4().hex}"
    zeros = () if several else (0,) * (result.ndim - 1)
    recipes = dict(enumerate(_spread(samples.known)))
    loads, behind = graph_of(recipes, lambda i: (f"load-{name}", i))
    # The collection keeps the futures on which it depends.
    behind |= {f.key: f for recipe in recipes.values() for f in recipe.futures}
    tasks: dict[Key, Any] = {}
    for i in recipes:
        key = (name, i, *zeros)
        arguments = TaskRef((f"load-{name}", i)), reference, samples.functions
        tasks[key] = Task(key, partitions.of_samples, *arguments, i, nothing)
    layers = HighLevelGraph.from_collections(name, {**behind, **loads, **tasks}, sources)
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


def is_here(samples: Any) -> bool:
    """Return whether samples are in memory, and not Dask's."""
    if isinstance(samples, SampleSet):
        return False
    if isinstance(samples, (tuple, list, dict)):
        return not any(hasattr(part, "__dask_graph__") for part in parts_of(samples))
    if hasattr(samples, "__dask_graph__"):  # xarray's in memory return None
        return samples.__dask_graph__() is None
    return True


def by_workers(samples: Any, client: Any, predict: Callable[[Any], Any]) -> Any:
    """Return the results for samples in memory, as the same kind, computed by the workers.

    ``predict`` returns lazy results for the same samples in Dask's form. Raises ClusterError if
    there is no worker, or if workers were lost in each of several attempts.
    """
    if hasattr(samples, "shape") and 0 in samples.shape[:1]:  # nothing to send
        return predict(samples)
    cluster, name = Cluster(client), "prediction"
    threads = sum(cluster.workers(name).values())

    def attempt() -> Any:
        # Each attempt sends the parts again: they are lost with their workers.
        lazy = predict(_parted(samples, threads))
        if not isinstance(lazy, (tuple, dict)):
            return client.compute(lazy).result()
        results = client.gather(client.compute(parts_of(lazy)))
        return tuple(results) if isinstance(lazy, tuple) else dict(zip(lazy, results, strict=True))

    return until_done(cluster, name, attempt, lambda: None)


def _parted(samples: Any, threads: int) -> Any:
    """Return samples as a Dask collection with a part for each thread, or more if large."""
    if hasattr(samples, "chunk"):  # xarray's
        variables = list(getattr(samples, "data_vars", {}).values())
        first = next(iter((variables or [samples])[0].dims), None)
        if first is None:
            return samples
        n = samples.sizes[first]
        return samples.chunk({first: -(-max(1, n) // _parts(n, samples.nbytes, threads))})
    if hasattr(samples, "iloc"):
        import dask.dataframe as dd

        n, nbytes = len(samples), int(samples.memory_usage().sum())
        return dd.from_pandas(samples, npartitions=_parts(n, nbytes, threads), sort=False)
    x = prepared(samples)
    nbytes = sum(part.nbytes for part in parts_of(x))
    return SampleSet.from_arrays(x=x, partitions=_parts(rows(x), nbytes, threads))


def _parts(n: int, nbytes: int, threads: int) -> int:
    return min(max(threads, -(-nbytes // LARGEST_PART)), max(1, n))
