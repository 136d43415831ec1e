"""Exports: a SampleSet as Dask's and xarray's lazy collections, with the same partitions."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from daskdl.compat.dask import Task, TaskRef
from daskdl.data.functions import Function, take
from daskdl.data.on_workers.tasks import Graph, graph_of
from daskdl.data.partition import Batch, Partition
from daskdl.data.ragged import Ragged
from daskdl.errors import DataError

if TYPE_CHECKING:
    import xarray as xr

    from daskdl.data.samples import SampleSet


def to_dask_array(samples: SampleSet, name: str = "x") -> Any:
    """Return an array of the samples as a lazy dask.array.Array, a chunk for each partition."""
    import dask.array as da

    if name not in samples.schema:
        raise DataError(
            f"SampleSet: expected one of {sorted(samples.schema)}, found {name!r}"
            "; give the name of one of these arrays"
        )
    shape, dtype = samples.schema[name]
    if -1 in shape:
        raise DataError(
            f"SampleSet.to_dask_array: expected an array of one shape, found {name} ragged; "
            "pad it by map() first"
        )
    blocks = zip(delayed(samples, itemgetter(name)), samples.lengths, strict=True)
    return da.concatenate(
        [da.from_delayed(block, (n, *shape), dtype=dtype) for block, n in blocks], axis=0
    )


def to_bag(samples: SampleSet) -> Any:
    """Return the samples as a lazy dask.bag.Bag of dicts, with the same partitions."""
    import dask.bag as db

    return db.from_delayed(delayed(samples, rows))


def to_dataframe(samples: SampleSet) -> Any:
    """Return the samples as a lazy dask.dataframe.DataFrame, with the same partitions.

    A vector ``x`` becomes columns ``x_0``, ``x_1``, ...; arrays of more axes, and ragged ones,
    are values of one column.
    """
    import dask.dataframe as dd

    meta = frame(samples.head(1)).iloc[:0]
    return dd.from_delayed(delayed(samples, frame), meta=meta, verify_meta=False)


def to_xarray(samples: SampleSet, dim: str = "sample") -> xr.Dataset:
    """Return the samples along a dimension of a Dataset of lazy arrays."""
    import xarray as xr

    arrays = {name: to_dask_array(samples, name) for name in samples.schema}
    return xr.Dataset(
        {
            name: ((dim, *(f"{name}_{axis}" for axis in range(1, array.ndim))), array)
            for name, array in arrays.items()
        }
    )


def export(
    functions: Sequence[Function], finish: Callable[[Batch], Any], partition: Partition, number: int
) -> Any:
    """Return all samples of a partition, after the functions, in another form."""
    everything = np.arange(len(partition))
    return finish(take(partition, everything, functions, (0, "export", number)))


def delayed(samples: SampleSet, finish: Callable[[Batch], Any]) -> list[Any]:
    """Return a Delayed of ``finish(batch)`` for each partition."""
    from dask.delayed import Delayed

    from daskdl.compat.dask import HighLevelGraph

    name = f"export-{uuid.uuid4().hex[:12]}"
    recipes = dict(enumerate(samples.recipes))
    tasks, behind = graph_of(recipes, lambda i: (f"load-{name}", i))
    # A collection keeps what it stands on.
    behind |= {f.key: f for recipe in recipes.values() for f in recipe.futures}
    call = partial(export, samples.functions, finish)
    exports: Graph = {
        (name, i): Task((name, i), call, TaskRef((f"load-{name}", i)), i) for i in recipes
    }
    whole = HighLevelGraph.from_collections("daskdl", {**behind, **tasks, **exports})
    return [Delayed(key, whole, layer="daskdl") for key in exports]


def rows(batch: Batch) -> list[dict[str, Any]]:
    """Return the samples of a batch one by one."""
    return [dict(zip(batch, values, strict=True)) for values in zip(*batch.values(), strict=True)]


def frame(batch: Batch) -> Any:
    """Return a batch as a pandas DataFrame: a column for each number of a sample's vector.

    Arrays of more axes, and ragged ones, are columns of arrays.
    """
    import pandas as pd

    return pd.DataFrame({name: c for key, value in batch.items() for name, c in _split(key, value)})


def _split(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Ragged) or value.ndim > 2:
        yield name, list(value)
    elif value.ndim == 2:
        for i in range(value.shape[1]):
            yield f"{name}_{i}", value[:, i]
    else:
        yield name, value
