"""Exports: a SampleSet as Dask's and xarray's lazy collections, with the same partitions."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from daskdl.compat.dask_graph import Task, TaskRef
from daskdl.data.functions import take
from daskdl.data.on_workers.tasks import Graph, graph_of
from daskdl.data.partition import Partition
from daskdl.data.ragged import Ragged
from daskdl.data.sample_protocol import Described
from daskdl.errors import DataError

if TYPE_CHECKING:
    import xarray as xr
    from dask.typing import Key


class Exports:
    """Methods ``to_...`` of a SampleSet."""

    def to_dask_array(self, name: str = "x") -> Any:
        """Return an array of the samples as a lazy dask.array.Array, a chunk for each partition."""
        return to_dask_array(_set(self), name)

    def to_bag(self) -> Any:
        """Return the samples as a lazy dask.bag.Bag of dicts, with the same partitions."""
        return to_bag(_set(self))

    def to_dataframe(self) -> Any:
        """Return the samples as a lazy dask.dataframe.DataFrame, with the same partitions.

        A vector ``x`` becomes columns ``x_0``, ``x_1``, ...; arrays of more axes, and ragged ones,
        are values of one column.
        """
        return to_dataframe(_set(self))

    def to_xarray(self, dim: str = "sample") -> xr.Dataset:
        """Return the samples along a dimension of a Dataset of lazy arrays."""
        return to_xarray(_set(self), dim)


@dataclass(frozen=True)
class Export:
    """Take all samples of a partition as the functions of a set leave them."""

    functions: Sequence[Callable[..., Any]]
    finish: Callable[[dict[str, Any]], Any]

    def __call__(self, partition: Partition, number: int) -> Any:
        """Take them."""
        everything = np.arange(len(partition))
        return self.finish(take(partition, everything, self.functions, (0, "export", number)))


def _set(samples: Any) -> Described:
    return samples


def graph(samples: Described, finish: Callable[[dict[str, Any]], Any]) -> tuple[Graph, list[Key]]:
    """Return tasks that give ``finish(batch)`` for each partition, and their keys."""
    name = f"export-{uuid.uuid4().hex[:12]}"
    recipes = dict(enumerate(samples.recipes))
    tasks, behind = graph_of(recipes, lambda i: (f"load-{name}", i))
    # A collection keeps what it stands on.
    behind |= {f.key: f for recipe in recipes.values() for f in recipe.futures}
    export = Export(samples.functions, finish)
    exports: Graph = {
        (name, i): Task((name, i), export, TaskRef((f"load-{name}", i)), i) for i in recipes
    }
    return {**behind, **tasks, **exports}, list(exports)


def delayed(samples: Described, finish: Callable[[dict[str, Any]], Any]) -> list[Any]:
    """Return a Delayed for each partition."""
    from dask.delayed import Delayed

    from daskdl.compat.dask_graph import HighLevelGraph

    tasks, keys = graph(samples, finish)
    whole = HighLevelGraph.from_collections("daskdl", tasks)
    return [Delayed(key, whole, layer="daskdl") for key in keys]


@dataclass(frozen=True)
class Column:
    """Take one array of a batch."""

    name: str

    def __call__(self, batch: dict[str, Any]) -> Any:
        """Take it."""
        return batch[self.name]


def to_dask_array(samples: Described, name: str) -> Any:
    """Return an array of the samples; see :meth:`SampleSet.to_dask_array`."""
    import dask.array as da

    (shape, dtype), column = _field(samples, name), Column(name)
    if -1 in shape:
        raise DataError(
            f"SampleSet.to_dask_array: expected an array of one shape, found {name} ragged; pad it "
            "by map() first"
        )
    blocks = zip(delayed(samples, column), samples.lengths, strict=True)
    return da.concatenate(
        [da.from_delayed(block, (n, *shape), dtype=dtype) for block, n in blocks], axis=0
    )


def to_bag(samples: Described) -> Any:
    """Return a Bag of dicts; see :meth:`SampleSet.to_bag`."""
    import dask.bag as db

    return db.from_delayed(delayed(samples, rows))


def to_dataframe(samples: Described) -> Any:
    """Return a DataFrame; see :meth:`SampleSet.to_dataframe`."""
    import dask.dataframe as dd

    meta = frame(samples.head(1)).iloc[:0]
    return dd.from_delayed(delayed(samples, frame), meta=meta, verify_meta=False)


def to_xarray(samples: Described, dim: str) -> xr.Dataset:
    """Return a Dataset; see :meth:`SampleSet.to_xarray`."""
    import xarray as xr

    arrays = {name: to_dask_array(samples, name) for name in samples.schema}
    return xr.Dataset(
        {
            name: ((dim, *(f"{name}_{axis}" for axis in range(1, array.ndim))), array)
            for name, array in arrays.items()
        }
    )


def rows(batch: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the samples of a batch one by one."""
    return [dict(zip(batch, values, strict=True)) for values in zip(*batch.values(), strict=True)]


def frame(batch: dict[str, Any]) -> Any:
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


def _field(samples: Described, name: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
    schema = samples.schema
    if name not in schema:
        raise DataError(
            f"SampleSet: expected one of {sorted(schema)}, found {name!r}"
            "; give the name of one of these arrays"
        )
    return schema[name]
