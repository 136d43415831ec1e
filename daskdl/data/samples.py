"""SampleSet: a partitioned collection of samples."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from daskdl.data.partition import (
    Arrays,
    Batch,
    Indices,
    Partition,
    Recipe,
    cut,
    even_bounds,
    join,
)
from daskdl.data.random import generator
from daskdl.errors import DataError, SettingsError

if TYPE_CHECKING:
    import os

    import xarray as xr


class SampleSet:
    """Samples in partitions, each loaded where it is used.

    A sample is a set of named arrays (``x`` and ``y`` for training). Nothing is loaded before it is
    needed, and a partition is loaded again from its recipe where a worker that held it died.

    Parameters
    ----------
    recipes : sequence of Recipe
        One for each partition.
    functions : sequence of callables
        What :meth:`map` was given.

    See Also
    --------
    from_arrays, from_xarray : the ways to make one.
    """

    def __init__(
        self, recipes: Sequence[Recipe], functions: Sequence[Callable[..., Any]] = ()
    ) -> None:
        self.recipes = tuple(recipes)
        self.functions = tuple(functions)
        if not self.recipes or not len(self):
            raise DataError("SampleSet: expected at least one sample, found none")

    @classmethod
    def from_arrays(cls, *, partitions: int = 1, **arrays: ArrayLike) -> SampleSet:
        """Make one from arrays in memory.

        Parameters
        ----------
        partitions : int
            Cut into so many of nearly equal length; no more than there are samples.
        **arrays : array_like (n, ...)
            By name; for training ``x`` and ``y``.

        Raises
        ------
        DataError
            When the arrays differ in length, or are empty.
        """
        held = {name: np.asarray(value) for name, value in arrays.items()}
        lengths = {name: len(a) if a.ndim else "no axis" for name, a in held.items()}
        if len(set(lengths.values())) != 1 or "no axis" in lengths.values():
            raise DataError(
                "SampleSet.from_arrays: expected arrays with one common length of the first axis, "
                f"found {lengths or 'no arrays'}"
            )
        return cls([Arrays(held)]).repartition(partitions)

    @classmethod
    def from_xarray(
        cls,
        data: str | os.PathLike[str] | xr.Dataset | xr.DataArray,
        variable: str = "rain_rate",
        **options: Any,
    ) -> SampleSet:
        """Make one of the windows of consecutive frames in a store or an array.

        ``n_in`` frames are ``x`` and the ``n_out`` after them ``y``. The options are those of
        :func:`daskdl.data.windows.window_recipes`.
        """
        from daskdl.data.windows import window_recipes

        return cls(window_recipes(data, variable, **options))

    # --- what it holds

    @property
    def lengths(self) -> tuple[int, ...]:
        """Samples of each partition."""
        return tuple(map(len, self.recipes))

    @property
    def partitions(self) -> int:
        """Number of partitions."""
        return len(self.recipes)

    @property
    def nbytes(self) -> int:
        """Bytes of all partitions once they are loaded."""
        return sum(recipe.nbytes for recipe in self.recipes)

    def __len__(self) -> int:
        return sum(self.lengths)

    def head(self, n: int = 5) -> Batch:
        """Return the first samples, as :meth:`map`'s functions leave them."""
        if n < 0:
            raise SettingsError(f"SampleSet.head: expected at least 0 samples, found {n!r}")
        n = min(n, len(self))
        recipe = join(cut(self.recipes, 0, max(n, 1)))
        return self.take(recipe.load(), np.arange(n), (0, "head", 0))

    @property
    def schema(self) -> dict[str, tuple[tuple[int, ...], np.dtype[Any]]]:
        """Shape and dtype of each array of a sample; loads one sample to see."""
        return {name: (a.shape[1:], a.dtype) for name, a in self.head(1).items()}

    def __repr__(self) -> str:
        fields = ", ".join(
            f"{name}: {dtype.kind}{8 * dtype.itemsize}{list(shape)}"
            for name, (shape, dtype) in self.schema.items()
        )
        return (
            f"SampleSet({fields}; {len(self):,} samples in {self.partitions} "
            f"partition{'s' * (self.partitions != 1)}, {_size(self.nbytes)})"
        )

    # --- others made of it

    def map(self, function: Callable[..., Batch]) -> SampleSet:
        """Pass what is drawn through a function, lazily and where it is drawn.

        Parameters
        ----------
        function : callable
            ``function(batch) -> batch`` or ``function(batch, rng) -> batch``, from a dict of arrays
            to a dict of arrays with the same first axis. It must pickle. ``rng`` is a Generator
            seeded by what is drawn, so that the same batch is augmented the same way on any worker.
        """
        if not callable(function):
            raise SettingsError(f"SampleSet.map: expected a function, found {function!r}")
        return SampleSet(self.recipes, (*self.functions, function))

    def repartition(self, partitions: int) -> SampleSet:
        """Cut the same samples, in the same order, into so many partitions of nearly equal length.

        There are no more partitions than samples.
        """
        if partitions < 1:
            raise SettingsError(f"partitions: expected at least 1, found {partitions!r}")
        n = min(partitions, len(self))
        bounds = even_bounds(len(self), n)
        recipes = [join(cut(self.recipes, a, b)) for a, b in pairwise(bounds)]
        return SampleSet(recipes, self.functions)

    def take(self, partition: Partition, indices: Indices, draw: tuple[Any, ...]) -> Batch:
        """Return samples of a loaded partition as :meth:`map`'s functions leave them.

        Parameters
        ----------
        partition : Partition
        indices : int (n,)
        draw : (seed, purpose, numbers...)
            What the functions' Generators are seeded by.
        """
        return take(partition, indices, self.functions, draw)


def take(
    partition: Partition,
    indices: Indices,
    functions: Sequence[Callable[..., Any]],
    draw: tuple[Any, ...],
) -> Batch:
    """Return samples of a partition passed through functions; see :meth:`SampleSet.take`."""
    batch = partition.take(indices)
    for i, function in enumerate(functions):
        more = (generator(*draw, i),) if _wants_rng(function) else ()
        batch = function(batch, *more)
        if not isinstance(batch, dict) or _lengths(batch) != {(len(indices),)}:
            found = (
                {name: np.shape(a) for name, a in batch.items()}
                if isinstance(batch, dict)
                else type(batch).__name__
            )
            raise DataError(
                f"SampleSet.map: expected {_name(function)} to return a dict of arrays of "
                f"{len(indices)} samples, found {found}"
            )
    return batch


def _lengths(batch: Batch) -> set[tuple[int, ...]]:
    return {np.shape(a)[:1] for a in batch.values()}


def _wants_rng(function: Callable[..., Any]) -> bool:
    try:
        signature = inspect.signature(function)
        signature.bind(None, None)
    except (TypeError, ValueError):
        return False
    # An optional second argument of another name is an option of the function's own.
    second = list(signature.parameters.values())[1:2]
    return not second or second[0].default is inspect.Parameter.empty or second[0].name == "rng"


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__qualname__", type(function).__qualname__)


def _size(nbytes: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if nbytes < 1000:
            return f"{nbytes:.3g} {unit}"
        nbytes /= 1000
    return f"{nbytes:.3g} TB"
