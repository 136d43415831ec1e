"""Stream: a partition too large to hold, read block by block ahead of need."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from daskdl.data.on_workers.tasks import futures_of
from daskdl.data.partition import Batch, Excerpt, Indices, Partition, Recipe, cut, even_bounds
from daskdl.data.pool import Pool
from daskdl.data.ragged import concatenated
from daskdl.data.random import generator
from daskdl.data.transformations import Mapped, is_shuffle
from daskdl.errors import SettingsError

if TYPE_CHECKING:
    from daskdl.data.samples import SampleSet

#: Blocks that are mixed with each other: as many again are being read meanwhile.
MIXED = 4


@dataclass(frozen=True)
class StreamRecipe:
    """The samples of many recipes, of which few are held at a time.

    Parameters
    ----------
    blocks : tuple of Recipe
        Each is read by itself, whole.
    held : int
        Bytes that may be held.
    """

    blocks: tuple[Recipe, ...] = field(repr=False)
    held: int

    @property
    def nbytes(self) -> int:
        """Bytes of all blocks."""
        return sum(block.nbytes for block in self.blocks)

    @property
    def in_memory(self) -> bool:
        """Whether any block carries its data."""
        return any(block.in_memory for block in self.blocks)

    def __len__(self) -> int:
        return sum(map(len, self.blocks))

    def part(self, start: int, stop: int) -> StreamRecipe:
        """Return the recipe of the samples from ``start`` up to ``stop``."""
        return StreamRecipe(tuple(cut(self.blocks, start, stop)), self.held)

    def load(self) -> Streamed:
        """Return a partition that reads its blocks when they are needed."""
        return Streamed(self.blocks)

    def followed_by(self, others: Sequence[Recipe]) -> StreamRecipe:
        """Return the stream of these samples and of other streams'."""
        more = (block for other in others for block in other.blocks)  # type: ignore[attr-defined]
        return StreamRecipe((*self.blocks, *more), self.held)


@dataclass(frozen=True)
class PooledRecipe(Excerpt):
    """The samples of a stream whose blocks are others in every epoch.

    Parameters
    ----------
    pool : Pool
    start, stop : int
        What of the pool is this stream's.
    held : int
        Bytes that may be held.
    """

    pool: Pool = field(repr=False)
    start: int
    stop: int
    held: int

    @property
    def inputs(self) -> tuple[Recipe, ...]:
        """What :attr:`make` is called with, loaded."""
        return (self.pool,)  # type: ignore[return-value]

    @property
    def make(self) -> Callable[[Pool], Streamed]:
        """Make the partition."""
        return Pooled(self.start, self.stop)

    @property
    def nbytes(self) -> int:
        """Bytes of all blocks that are its own before any epoch."""
        return sum(block.nbytes for block in self.pool.as_they_lie(self.start, self.stop))

    def load(self) -> Streamed:
        """Return a partition that reads its blocks when they are needed."""
        return self.make(self.pool)


@dataclass(frozen=True)
class Pooled:
    """Makes the partition of a stretch of a pool."""

    start: int
    stop: int

    def __call__(self, pool: Pool) -> Streamed:
        """Make it."""
        own = pool.as_they_lie(self.start, self.stop)
        return Streamed(own, partial(pool.dealt, self.start, self.stop))


def stream(recipe: Recipe, held: int, growth: float = 1.0) -> StreamRecipe:
    """Return the stream of a recipe's samples, cut into blocks that fit.

    Parameters
    ----------
    recipe : Recipe
        Of several, joined, each is cut by itself.
    held : int
        Bytes of all blocks that are held at a time.
    growth : float
        Bytes of a loaded block for each byte that its recipe tells.
    """
    limit = held / (2 * MIXED)
    blocks: list[Recipe] = []
    for one in _unjoined(recipe):
        if not len(one):
            continue
        n = min(len(one), max(1, int(np.ceil(one.nbytes * growth / limit))))
        bounds = even_bounds(len(one), n)
        blocks += [one] if n == 1 else [one.part(a, b) for a, b in pairwise(bounds)]
    return StreamRecipe(tuple(blocks), held)


def streams(recipes: Sequence[Recipe], held: int | str) -> list[Recipe]:
    """Return the streams of recipes; see :meth:`SampleSet.stream`."""
    from dask.utils import parse_bytes

    if any(True for recipe in recipes for _ in futures_of(recipe)):
        raise SettingsError(
            "SampleSet.stream: expected samples that a worker can read by itself, found what Dask "
            "holds in the workers' memory; fit() uses it where it is"
        )
    if any(is_shuffle(recipe) and not recipe.in_memory for recipe in recipes):
        raise SettingsError(
            "SampleSet.stream: expected samples that lie together where they are read, found those "
            "of a shuffle(), of which every block would read all partitions; leave it out, since "
            "fit() deals the blocks of streams out anew in every epoch, or write_results() the "
            "shuffled ones first"
        )
    try:
        bound = parse_bytes(held)
    except (ValueError, TypeError, AttributeError) as error:
        raise SettingsError(f"held: expected bytes as in '1 GB', found {held!r}") from error
    if bound < 1:
        raise SettingsError(f"held: expected at least 1 byte, found {held!r}")
    growth = growth_of(next(recipe for recipe in recipes if len(recipe)))
    return [stream(recipe, bound, growth) for recipe in recipes if len(recipe)]


def ordered(samples: SampleSet, shuffle: str) -> SampleSet:
    """Return samples as a fit draws them that is told "global" or "local".

    Streams are pooled by "global". Those of samples that lie in the caller's memory are not: what
    is sent to a worker stays there.
    """
    if shuffle not in ("global", "local"):
        raise SettingsError(f"shuffle: expected 'global' or 'local', found {shuffle!r}")
    recipes = samples.recipes
    streaming = [recipe for recipe in recipes if isinstance(recipe, StreamRecipe)]
    if shuffle == "local":
        return samples if len(streaming) == len(recipes) else samples.stream()
    if len(streaming) < max(2, len(recipes)) or any(recipe.in_memory for recipe in recipes):
        return samples
    pool = Pool([block for one in streaming for block in one.blocks])
    bounds = pairwise(accumulate(map(len, streaming), initial=0))
    pooled = [
        PooledRecipe(pool, a, b, one.held) for one, (a, b) in zip(streaming, bounds, strict=True)
    ]
    return type(samples)(pooled, samples.functions)


def blocks_of(samples: SampleSet) -> dict[str, Any]:
    """Return the lengths of the blocks, which fix the order, if there are any."""
    recipes = samples.recipes
    if isinstance(recipes[0], PooledRecipe):
        return {"pool": [len(block) for block in recipes[0].pool.blocks]}
    streams = [recipe for recipe in recipes if isinstance(recipe, StreamRecipe)]
    return {"blocks": [[len(block) for block in one.blocks] for one in streams]} if streams else {}


def refuse_streams(where: str, recipes: Sequence[Recipe]) -> None:
    """Raise a SettingsError for streams, which a method would have to hold whole."""
    if any(isinstance(recipe, StreamRecipe) for recipe in recipes):
        raise SettingsError(
            f"SampleSet.{where}: expected samples before they are streamed, found a stream, which "
            f"is never held whole; call {where}() before stream()"
        )


def growth_of(recipe: Recipe) -> float:
    """Return the bytes of a loaded sample for each that its recipe tells, if a function made it.

    A recipe knows the bytes of what lies in its source: of images those that are encoded.
    """
    if not _is_made(recipe):
        return 1.0
    some = recipe.part(0, min(16, len(recipe)))
    return max(1.0, some.load().nbytes / max(1, some.nbytes))


class Streamed:
    """A partition that holds the blocks it draws from, and those that come next.

    In an epoch the blocks come in an order drawn anew, and so many at a time, :data:`MIXED`, are
    mixed with each other. While samples are drawn from these the next as many are read.

    Parameters
    ----------
    blocks : sequence of Recipe
    dealt : callable, optional
        From (seed, epoch) to the blocks of an epoch, in which there are as many samples, in their
        order. Positions are then those among the blocks of the epoch that was drawn last.
    """

    def __init__(
        self,
        blocks: Sequence[Recipe],
        dealt: Callable[[int, int], Sequence[Recipe]] | None = None,
    ) -> None:
        self._given, self._dealt = (tuple(blocks), dealt), dealt
        self._lock = threading.Lock()
        self._reader: ThreadPoolExecutor | None = None
        self._held: dict[int, Future[Partition]] = {}
        self._epoch: tuple[int, ...] | None = None
        self._begin(blocks)

    def _begin(self, blocks: Sequence[Recipe]) -> None:
        for future in self._held.values():
            future.cancel()
        self._held.clear()
        self._blocks = tuple(blocks)
        self._ends = np.cumsum([len(block) for block in blocks])
        self._coming = np.arange(len(self._blocks))  # as they lie, until an epoch is drawn
        self._order: Indices = np.arange(len(self))

    def __getstate__(self) -> tuple[Any, ...]:
        return self._given  # nothing of what it holds has to move with it

    def __setstate__(self, given: tuple[Any, ...]) -> None:
        self.__init__(*given)  # type: ignore[misc]

    @property
    def nbytes(self) -> int:
        """Bytes held now."""
        held = [future for future in list(self._held.values()) if future.done()]
        return sum(f.result().nbytes for f in held if f.exception() is None)

    def __sizeof__(self) -> int:
        return self.nbytes

    def __len__(self) -> int:
        return int(self._ends[-1])

    def order(self, seed: int, epoch: int, shard: int) -> Indices:
        """Return all positions in the order of an epoch, int64 (n,)."""
        with self._lock:
            if self._epoch != (seed, epoch, shard):
                draw = generator(seed, "order", epoch, shard)
                if self._dealt is None:
                    self._coming = draw.permutation(len(self._blocks))
                else:
                    self._begin(self._dealt(seed, epoch))
                first = np.concatenate([[0], self._ends[:-1]])
                self._order = np.concatenate(
                    [
                        draw.permutation(
                            np.concatenate([np.arange(first[b], self._ends[b]) for b in some])
                        )
                        for some in _mixed(self._coming)
                    ]
                )
                self._epoch = seed, epoch, shard
            return self._order

    def take(self, indices: Indices) -> Batch:
        """Return the samples at these positions, reading what is not there yet."""
        with self._lock:
            place = np.argsort(self._coming)  # of each block in the order in which they come
            owner = np.searchsorted(self._ends, indices, side="right")
            columns: dict[str, list[Any]] = {}
            by_need = sorted(np.unique(owner), key=place.__getitem__)
            where = [np.flatnonzero(owner == b) for b in by_need]
            for b, some in zip(by_need or [0], where or [np.arange(0)], strict=True):
                first = self._ends[b] - len(self._blocks[b])
                partition = self._block(int(b), int(place[b]) // MIXED)
                for name, values in partition.take(indices[some] - first).items():
                    columns.setdefault(name, []).append(values)
            back = np.argsort(np.concatenate(where)) if where else np.arange(0)
            return {name: concatenated(column)[back] for name, column in columns.items()}

    def _block(self, block: int, group: int) -> Partition:
        """Return a loaded block, let go of those before its group, and have the next ones read."""
        if self._reader is None:
            self._reader = ThreadPoolExecutor(1, thread_name_prefix="daskdl-read")
        near = self._coming[group * MIXED : (group + 2) * MIXED].tolist()
        for b in [b for b in self._held if b not in near]:
            self._held.pop(b).cancel()
        for b in near:
            if b not in self._held:
                self._held[b] = self._reader.submit(self._blocks[b].load)
        try:
            return self._held[block].result()
        except BaseException:
            self._held.pop(block, None)  # the next one who asks tries again
            raise


def _mixed(coming: Indices) -> Iterator[Indices]:
    for start in range(0, len(coming), MIXED):
        yield coming[start : start + MIXED]


def _is_made(recipe: Recipe) -> bool:
    made_of = getattr(recipe, "columns", None) or getattr(recipe, "fields", None)
    made = isinstance(getattr(recipe, "make", None), Mapped) or getattr(made_of, "decode", None)
    return bool(made) or any(map(_is_made, getattr(recipe, "inputs", ())))


def _unjoined(recipe: Recipe) -> list[Recipe]:
    parts = getattr(recipe, "recipes", None)
    return [recipe] if parts is None else [one for part in parts for one in _unjoined(part)]
