"""SampleSet: a partitioned collection of samples."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from daskdl.data import exports
from daskdl.data.display import line, table
from daskdl.data.functions import Plain, name_of, take, wants_rng
from daskdl.data.lazy.blocks import all_in_blocks, refuse_blocks
from daskdl.data.lazy.checks import Check
from daskdl.data.lazy.counting import derived, left_out
from daskdl.data.lazy.derived import part_of, select_from
from daskdl.data.lazy.joined import cut, even_bounds, join
from daskdl.data.lazy.transformations import SHUFFLED, MapBatches, Permuted, filtered
from daskdl.data.nested import flat
from daskdl.data.on_workers.tasks import count, on_each, persisted
from daskdl.data.partition import Batch, Indices, Partition
from daskdl.data.ragged import Ragged, concatenated
from daskdl.data.recipe import Arrays, Recipe
from daskdl.data.sources.collections import from_arrays, from_bag, from_delayed
from daskdl.data.sources.dataframe import from_dataframe
from daskdl.data.sources.files import from_files
from daskdl.data.sources.parquet import from_parquet
from daskdl.data.sources.records import check_on_error
from daskdl.data.sources.tars import from_tar
from daskdl.data.sources.xarray import from_xarray
from daskdl.data.sources.zarr import from_zarr
from daskdl.data.split import split
from daskdl.data.windows.choice import from_windows
from daskdl.errors import DataError, SettingsError

if TYPE_CHECKING:
    from distributed import Client

    from daskdl.data.tabular import TableEncoder

    Schema = dict[str, tuple[tuple[int, ...], np.dtype[Any]]]


class SampleSet:
    """Samples in partitions, each loaded where it is used.

    A sample is a set of named arrays: ``x`` and ``y`` for training; ``x.0``, ``x.1`` or ``x.age``
    if there are several (:mod:`daskdl.data.nested`). Nothing is loaded before it is needed. A
    partition of a lost worker is loaded again from its recipe. If the number of samples is unknown
    before loading, the workers count them when the number is needed.

    Parameters
    ----------
    recipes : sequence of Recipe
        One for each partition.
    functions : sequence of callables
        Functions of :meth:`map`.
    """

    #: What made numbers and ids of the rows of a DataFrame, if it was one with a target.
    encoder: TableEncoder | None = None

    def __init__(
        self, recipes: Sequence[Recipe], functions: Sequence[Callable[..., Any]] = ()
    ) -> None:
        self._recipes = tuple(recipes)
        self.functions = tuple(functions)
        self._schema: Schema | None = None
        if self._recipes and not self.functions:
            schema = self._recipes[0].schema
            self._schema = None if schema is None else dict(schema)
        self._check_samples()

    # --- of and to other collections; a name may have several arrays, see daskdl.data.nested

    from_arrays = classmethod(from_arrays)
    from_bag = classmethod(from_bag)
    from_dataframe = classmethod(from_dataframe)
    from_delayed = classmethod(from_delayed)
    from_files = classmethod(from_files)
    from_parquet = classmethod(from_parquet)
    from_tar = classmethod(from_tar)
    from_windows = classmethod(from_windows)
    from_xarray = classmethod(from_xarray)
    from_zarr = classmethod(from_zarr)
    to_bag = exports.to_bag
    to_dask_array = exports.to_dask_array
    to_dataframe = exports.to_dataframe
    to_xarray = exports.to_xarray

    # --- what it holds

    @property
    def recipes(self) -> tuple[Recipe, ...]:
        """Recipes of the partitions; samples that are not counted yet are counted first."""
        return self.counted().known

    @property
    def known(self) -> tuple[Recipe, ...]:
        """Recipes of the partitions, counted or not."""
        return tuple(recipe.known for recipe in self._recipes)

    @property
    def is_counted(self) -> bool:
        """Whether the number of samples is known."""
        return all(recipe.is_counted for recipe in self._recipes)

    def counted(self, client: Client | None = None) -> SampleSet:
        """Count the samples if their number is unknown before loading; return itself.

        The workers of the client, by default the current one, count what only they can read.
        """
        if not self.is_counted:
            count(self._recipes, client)
            self._check_samples()
        return self

    @property
    def bad(self) -> tuple[str, ...]:
        """Names of records that ``on_error="skip"`` left out, each with the reason."""
        return tuple(left_out(self.counted()._recipes))

    @property
    def lengths(self) -> tuple[int, ...]:
        """Samples of each partition."""
        return tuple(map(len, self.recipes))

    @property
    def partitions(self) -> int:
        """Number of partitions."""
        return len(self._recipes)

    @property
    def nbytes(self) -> int:
        """Bytes of all loaded partitions, as far as their sources know."""
        return sum(recipe.nbytes for recipe in self.recipes)

    def __len__(self) -> int:
        return sum(self.lengths)

    def head(self, n: int = 5) -> Batch:
        """Return the first samples, after the functions of :meth:`map`.

        Only the partitions with these samples are loaded, and only these samples leave the workers.
        """
        if n < 0:
            raise SettingsError(f"SampleSet.head: expected at least 0 samples, found {n!r}")
        pieces: list[Batch] = []
        remaining = max(n, 1)  # of none there is still what they are made of
        for recipe in self.known:
            if remaining and recipe.is_counted:
                recipe = part_of(recipe, 0, remaining) if remaining < len(recipe) else recipe
            if not remaining or (recipe.is_counted and not len(recipe)):
                continue
            (piece,) = on_each([recipe], partial(_first, remaining))
            rows = max(map(len, piece.values()), default=0)
            remaining -= rows
            pieces += [piece] * bool(rows)
        if not pieces:
            raise DataError(
                "SampleSet: expected at least one sample, found none"
                "; look at the source and at filters"
            )
        arrays = {name: concatenated([piece[name] for piece in pieces]) for name in pieces[0]}
        shown = np.arange(min(n, max(n, 1) - remaining))
        return self.take(Arrays(arrays), shown, (0, "head", 0))

    @property
    def schema(self) -> Schema:
        """Shape and dtype of each array of a sample; -1 for an axis of any length.

        It may load one sample.
        """
        if self._schema is None:
            self._schema = {
                name: ((-1, *a.values.shape[1:]) if isinstance(a, Ragged) else a.shape[1:], a.dtype)
                for name, a in self.head(1).items()
            }
        return self._schema

    @property
    def has_schema(self) -> bool:
        """Whether :attr:`schema` is known without loading anything."""
        return self._schema is not None

    __repr__, _repr_html_ = line, table

    # --- others made of it

    def map(self, function: Callable[..., Batch]) -> SampleSet:
        """Pass samples through a function each time they are drawn, on the worker that draws them.

        Parameters
        ----------
        function : callable
            ``function(batch) -> batch`` or ``function(batch, rng) -> batch``, from a dict of arrays
            to a dict of arrays with the same first axis. It must pickle. The seed of the Generator
            ``rng`` depends on the draw, so that a batch is augmented the same way on any worker.
        """
        _check_function("map", function)
        return SampleSet(self._recipes, (*self.functions, function))

    def map_batches(self, function: Callable[[Batch], Batch], batch_size: int = 1024) -> SampleSet:
        """Pass partitions through a function, lazily and once, on the workers that load them.

        Workers keep the result: use it for expensive work that is the same in every epoch, such as
        decoding images or tokenising text. After a :meth:`map` it is called, like that, when
        samples are drawn.

        Parameters
        ----------
        function : callable
            ``function(batch) -> batch``, which treats each sample alone and keeps their number.
        batch_size : int
            Largest number of samples in a batch.
        """
        _check_function("map_batches", function)
        if batch_size < 1:
            raise SettingsError(f"batch_size: expected at least 1, found {batch_size!r}")
        if self.functions:
            return SampleSet(self._recipes, (*self.functions, Plain(function)))
        refuse_blocks("map_batches", self._recipes)
        transform = MapBatches(function, batch_size)
        return SampleSet([derived(recipe, transform) for recipe in self._recipes])

    def filter(self, predicate: Callable[[Batch], Any]) -> SampleSet:
        """Keep the samples for which a predicate holds, lazily.

        Tasks count them when their number is needed, which loads them once.

        Parameters
        ----------
        predicate : callable
            From a batch, after the functions of :meth:`map`, to a boolean for each sample.
        """
        _check_function("filter", predicate)
        refuse_blocks("filter", self._recipes)
        for function in self.functions:
            if wants_rng(function):
                raise SettingsError(
                    "SampleSet.filter: expected samples that are the same whenever they are drawn, "
                    f"found that {name_of(function)} draws random numbers; filter() before it"
                )
        transform = partial(filtered, predicate, self.functions)
        return SampleSet(
            [derived(r, transform, same_length=False) for r in self._recipes], self.functions
        )

    def check(
        self,
        *,
        shapes: Mapping[str, tuple[int | None, ...]] | None = None,
        classes: Mapping[str, int] | None = None,
        finite: bool = True,
        on_error: str = "raise",
    ) -> SampleSet:
        """Check samples lazily, as they are loaded, before the functions of :meth:`map`.

        Parameters
        ----------
        shapes : mapping of name to shape, optional
            Shapes that samples must have; None stands for any length.
        classes : mapping of name to int, optional
            Number of classes: labels are whole numbers from 0 and below it.
        finite : bool
            Whether NaN and infinity are bad.
        on_error : "raise" or "skip"
            Raise a DataError that names the first bad sample, or leave bad samples out and name
            them in :attr:`bad`.
        """
        check_on_error(on_error)
        refuse_blocks("check", self._recipes)
        rules = (shapes or {}, classes or {}, finite, on_error)
        recipes = [
            derived(recipe, Check(*rules, f"partition {i}"), same_length=on_error == "raise")
            for i, recipe in enumerate(self._recipes)
        ]
        return SampleSet(recipes, self.functions)

    def split(
        self, fractions: Sequence[float], seed: int = 0, blocks: Mapping[Any, int] | None = None
    ) -> tuple[SampleSet, ...]:
        """Cut the samples at random into several sets without common samples.

        Parameters
        ----------
        fractions : sequence of float
            Shares of all samples, such as ``(0.8, 0.1, 0.1)``; the rest up to 1 is in no set. Each
            set has its share of every partition, and its share of all samples to within one.
        seed : int
        blocks : mapping of name or number of an axis to int, optional
            For windows of :meth:`from_windows`: cells of blocks in space; each block belongs to one
            set. Windows across blocks of two sets are in no set, so that sets share no cell.
            Without it a warning names sets that do.
        """
        parts = split(self.recipes, fractions, seed, blocks)
        return tuple(SampleSet(part, self.functions) for part in parts)

    def shuffle(self, seed: int = 0) -> SampleSet:
        """Mix the samples of all partitions, lazily; their number stays, with nearly equal lengths.

        Each partition is loaded once, where it is, and its samples are sent to the others. The
        order depends on the seed and the partitions' lengths.
        """
        refuse_blocks("shuffle", self._recipes)
        recipes, p = self.recipes, self.partitions
        pieces: list[list[Recipe]] = [[] for _ in recipes]
        for i, recipe in enumerate(recipes):
            for j, (a, b) in enumerate(pairwise(even_bounds(len(recipe), p))):
                # Turned, so that the remainder does not always go to the same ones.
                if a < b:
                    some = select_from(recipe, Permuted(seed, "shuffle", i, a, b), b - a)
                    pieces[(i + j) % p].append(some)
        mixed = [
            select_from(whole, Permuted(seed, SHUFFLED, j, 0, len(whole)), len(whole))
            for j, whole in enumerate(map(join, filter(None, pieces)))
        ]
        return SampleSet(mixed, self.functions)

    def repartition(self, partitions: int) -> SampleSet:
        """Cut the same samples, in the same order, into partitions of nearly equal length.

        There are no more partitions than samples.
        """
        if partitions < 1:
            raise SettingsError(f"partitions: expected at least 1, found {partitions!r}")
        n = min(partitions, len(self))
        bounds = even_bounds(len(self), n)
        together = (cut(self.recipes, a, b) for a, b in pairwise(bounds))
        return SampleSet([join(parts) for parts in together], self.functions)

    def stream(self, partitions: int | None = None, held: int | str = "1 GB") -> SampleSet:
        """Return partitions larger than memory; a worker reads blocks of them, ahead of need.

        Blocks are the partitions of this set or parts of them. Each epoch has a new order of
        blocks: the samples of some blocks are mixed while the next blocks are read. With
        ``fit(shuffle="global")`` the blocks of all partitions are distributed to them anew in each
        epoch; with "local" each partition keeps its own. The order depends on the seed, the epoch
        and the blocks.

        Call it last; only :meth:`map` may follow.

        Parameters
        ----------
        partitions : int, optional
            Number of the new partitions, by default unchanged.
        held : int or str
            Bytes to hold of each partition, as in "1 GB": eight blocks.
        """
        samples = self if partitions is None else self.repartition(partitions)
        return SampleSet(all_in_blocks(samples.recipes, held), self.functions)

    def persist(self, client: Client | None = None) -> SampleSet:
        """Load all partitions onto the workers, where they stay; return the new set.

        Parameters
        ----------
        client : distributed.Client, optional
            By default the client that holds them already, or the current one; without a client this
            process holds them.
        """
        return SampleSet(persisted(self.known, client), self.functions)

    def take(self, partition: Partition, indices: Indices, seeds: tuple[Any, ...]) -> Batch:
        """Return samples of a loaded partition, after the functions of :meth:`map`.

        Parameters
        ----------
        partition : Partition
        indices : int (n,)
        seeds : (seed, purpose, numbers...)
            Seeds of the functions' Generators.
        """
        return take(partition, indices, self.functions, seeds)

    def _check_samples(self) -> None:
        if not self._recipes or (self.is_counted and not any(map(len, self.known))):
            bad = left_out(self._recipes)
            why = f" after {len(bad)} were left out, such as {bad[0]}" if bad else ""
            raise DataError(
                f"SampleSet: expected at least one sample, found none{why}"
                "; look at the source, and at what filter() and check() leave"
            )


def _first(n: int, partition: Partition, number: int) -> Batch:
    return flat(partition.take(np.arange(min(n, len(partition)))))


def _check_function(method: str, function: Any) -> None:
    if not callable(function):
        raise SettingsError(
            f"SampleSet.{method}: expected a function, found {function!r}"
            "; give a callable, without ()"
        )
