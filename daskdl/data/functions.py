"""Functions of a SampleSet, called with samples taken from a partition."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from daskdl.data.batches import generator
from daskdl.data.nested import flat
from daskdl.data.partition import Batch, Indices, Partition
from daskdl.data.ragged import Ragged, stacked
from daskdl.errors import DataError
from daskdl.masked import unmasked

Function = Callable[..., Any]
#: Samples that functions get at once where all of a partition pass through them.
AT_ONCE = 1024


def take(
    partition: Partition, indices: Indices, functions: Sequence[Function], seeds: tuple[Any, ...]
) -> Batch:
    """Return samples of a partition passed through functions; see :meth:`SampleSet.take`."""
    batch = _unmasked("samples", flat(partition.take(indices)))
    for i, function in enumerate(functions):
        more = (generator(*seeds, i),) if wants_rng(function) else ()
        batch = checked(function, function(batch, *more), len(indices))
        batch = _unmasked(f"SampleSet.map, {name_of(function)}", batch)
    return batch


def in_stretches(
    partition: Partition, functions: Sequence[Function], purpose: str, number: int
) -> Iterator[Batch]:
    """Yield a partition's samples passed through functions, :data:`AT_ONCE` at a time."""
    for start in range(0, max(1, len(partition)), AT_ONCE):
        where = np.arange(start, min(start + AT_ONCE, len(partition)))
        yield take(partition, where, functions, (0, purpose, number, start))


def checked(function: Function, batch: Any, count: int) -> Batch:
    """Return a function's result; raise a DataError unless it is a batch of ``count`` samples."""
    if isinstance(batch, dict):
        batch = {name: _array(function, name, a) for name, a in flat(batch).items()}
    if isinstance(batch, dict) and {_rows(a) for a in batch.values()} == {(count,)}:
        return batch
    described = (
        {name: _rows(a) if isinstance(a, Ragged) else np.shape(a) for name, a in batch.items()}
        if isinstance(batch, dict)
        else type(batch).__name__
    )
    raise DataError(
        f"SampleSet.map: expected {name_of(function)} to return a dict of arrays of {count} "
        f"samples, found {described}; return one row for each sample, or drop samples by filter()"
    )


def _array(function: Function, name: str, column: Any) -> Any:
    """Return a list, a tensor or a Series as an array; other values unchanged."""
    if isinstance(column, np.ndarray | Ragged):
        return column
    if not isinstance(column, list):
        return np.asarray(column) if hasattr(column, "__array__") else column
    where = f"SampleSet.map, {name_of(function)}, {name}"
    return stacked(column, where) if column else np.empty(0)


def wants_rng(function: Function) -> bool:
    """Return whether a function takes a Generator as its second argument."""
    if isinstance(function, Plain):
        return False
    try:
        signature = inspect.signature(function)
        signature.bind(None, None)
    except (TypeError, ValueError):
        return False
    # An optional second argument of another name is an option of the function's own.
    second = list(signature.parameters.values())[1:2]
    return not second or second[0].default is inspect.Parameter.empty or second[0].name == "rng"


@dataclass(frozen=True)
class Plain:
    """A function that is given the batch alone."""

    function: Function

    def __call__(self, batch: Batch) -> Batch:
        """Call it."""
        return self.function(batch)


def name_of(function: Function) -> str:
    """Return the name of a function, for errors."""
    if isinstance(function, Plain):
        function = function.function
    return getattr(function, "__qualname__", type(function).__qualname__)


def _unmasked(where: str, batch: Batch) -> Batch:
    """Return a batch with NaN for masked floats; other masked numbers are refused."""
    return {name: unmasked(f"{where}, {name}", column) for name, column in batch.items()}


def _rows(column: Any) -> tuple[int, ...]:
    return (len(column),) if isinstance(column, Ragged) else np.shape(column)[:1]
