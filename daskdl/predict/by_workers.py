"""Samples in the caller's memory, predicted by the workers of a client that was given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from daskdl.cluster.attempts import until_done
from daskdl.cluster.client import Cluster
from daskdl.data import SampleSet
from daskdl.nn.core.arguments import parts_of
from daskdl.predict.predictor import prepared, rows

#: Bytes of samples that are sent together, at most.
LARGEST_PART = 64_000_000


def is_here(samples: Any) -> bool:
    """Return whether samples are in memory, and not what Dask holds or loads."""
    if isinstance(samples, SampleSet):
        return False
    if isinstance(samples, (tuple, list, dict)):
        return not any(hasattr(part, "__dask_graph__") for part in parts_of(samples))
    if hasattr(samples, "__dask_graph__"):  # xarray's have one, which is None in memory
        return samples.__dask_graph__() is None
    return True


def by_workers(samples: Any, client: Any, predict: Callable[[Any], Any]) -> Any:
    """Return the results for samples in memory, as the same kind, computed by the workers.

    ``predict`` gives the lazy results for the same samples as Dask holds them. Raises ClusterError
    when there is no worker, or workers were lost in each of several attempts.
    """
    if hasattr(samples, "shape") and 0 in samples.shape[:1]:  # nothing to send
        return predict(samples)
    cluster, name = Cluster(client), "prediction"
    threads = sum(cluster.workers(name).values())

    def attempt() -> Any:
        # Once more after a loss: with the workers go the parts that were sent to them.
        lazy = predict(_parted(samples, threads))
        if not isinstance(lazy, (tuple, dict)):
            return client.compute(lazy).result()
        results = client.gather(client.compute(parts_of(lazy)))
        return tuple(results) if isinstance(lazy, tuple) else dict(zip(lazy, results, strict=True))

    return until_done(cluster, name, attempt, lambda: None)


def _parted(samples: Any, threads: int) -> Any:
    """Return samples as Dask holds them, in a part for each thread, or more of many bytes."""
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
