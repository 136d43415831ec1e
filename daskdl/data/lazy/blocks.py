"""Blocks: partitions larger than memory as recipes of blocks, which are read one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from daskdl.data.batches import generator
from daskdl.data.lazy.block_partition import MIXED, BlockPartition
from daskdl.data.lazy.derived import Derived, part_of
from daskdl.data.lazy.joined import cut, even_bounds
from daskdl.data.recipe import Loadable, Recipe, version_of_all
from daskdl.errors import SettingsError

if TYPE_CHECKING:
    from daskdl.data.samples import SampleSet


@dataclass(frozen=True)
class BlockRecipe(Recipe):
    """The samples of many recipes, read one by one; ``held`` bytes of them at a time."""

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

    @property
    def version(self) -> str:
        """Versions of the blocks' files."""
        return version_of_all(self.blocks)

    def __len__(self) -> int:
        return sum(map(len, self.blocks))

    def part(self, start: int, stop: int) -> BlockRecipe:
        """Return the recipe of the samples from ``start`` up to ``stop``."""
        return BlockRecipe(tuple(cut(self.blocks, start, stop)), self.held)

    def load(self) -> BlockPartition:
        """Return a partition that reads its blocks when they are needed."""
        return BlockPartition(self.blocks)

    def followed_by(self, others: Sequence[Recipe]) -> Recipe | None:
        """Return the recipe of these samples and of others', in blocks if all of them are."""
        blocked = [other for other in others if isinstance(other, BlockRecipe)]
        if len(blocked) < len(others):
            return None
        more = (block for other in blocked for block in other.blocks)
        return BlockRecipe((*self.blocks, *more), self.held)


class PooledRecipe(Derived):
    """The samples ``start`` up to ``stop`` of a pool, from other blocks in every epoch."""

    def __init__(self, pool: Pool, start: int, stop: int) -> None:
        self.pool, self.start, self.stop = pool, start, stop
        super().__init__([pool], partial(stretch_of, start, stop), stop - start, 0)

    @property
    def nbytes(self) -> int:
        """Bytes of its blocks before any epoch."""
        return sum(block.nbytes for block in self.pool.as_they_lie(self.start, self.stop))

    def part(self, start: int, stop: int) -> PooledRecipe:
        """Return the recipe of the samples from ``start`` up to ``stop`` of these."""
        return PooledRecipe(self.pool, self.start + start, self.start + stop)


def stretch_of(start: int, stop: int, pool: Pool) -> BlockPartition:
    """Return the partition of a stretch of a pool."""
    return BlockPartition(pool.as_they_lie(start, stop), partial(pool.dealt, start, stop))


def in_blocks(recipe: Recipe, held: int, growth: float = 1.0) -> BlockRecipe:
    """Return a recipe's samples in blocks; eight blocks fit into ``held`` bytes.

    A loaded block has ``growth`` bytes for each byte of its recipe. Each of joined recipes is cut
    alone.
    """
    limit = held / (2 * MIXED)
    blocks: list[Recipe] = []
    for piece in recipe.pieces:
        if not len(piece):
            continue
        n = min(len(piece), max(1, int(np.ceil(piece.nbytes * growth / limit))))
        bounds = even_bounds(len(piece), n)
        blocks += [piece] if n == 1 else [part_of(piece, a, b) for a, b in pairwise(bounds)]
    return BlockRecipe(tuple(blocks), held)


def all_in_blocks(recipes: Sequence[Recipe], held: int | str) -> list[Recipe]:
    """Return recipes of the same samples in blocks; see :meth:`SampleSet.stream`."""
    from dask.utils import parse_bytes

    if any(recipe.futures for recipe in recipes):
        raise SettingsError(
            "SampleSet.stream: expected samples that a worker can read by itself, found what Dask "
            "holds in the workers' memory; fit() uses it where it is"
        )
    if any(recipe.is_shuffled and not recipe.in_memory for recipe in recipes):
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
    return [in_blocks(recipe, bound, growth) for recipe in recipes if len(recipe)]


def growth_of(recipe: Recipe) -> float:
    """Return the bytes of a loaded sample for each byte of its recipe.

    They differ if a function makes the samples: a recipe of images knows the encoded bytes.
    """
    if not recipe.decodes:
        return 1.0
    some = part_of(recipe, 0, min(16, len(recipe)))
    return max(1.0, some.load().nbytes / max(1, some.nbytes))


def refuse_blocks(method: str, recipes: Sequence[Recipe]) -> None:
    """Raise a SettingsError for samples in blocks; the method would need them whole."""
    if any(isinstance(recipe, BlockRecipe) for recipe in recipes):
        raise SettingsError(
            f"SampleSet.{method}: expected samples before they are streamed, found a stream, which "
            f"is never held whole; call {method}() before stream()"
        )


class Pool(Loadable):
    """Blocks that any worker can read; a partition reads other ones in every epoch.

    An order of blocks is drawn from (seed, epoch), and the row of their samples is always cut at
    the same places. So each partition has the same number of samples in every epoch, and all have
    every sample once. Both sides read a block at a cut, each its part.

    A graph has it once for all its partitions, since it is their input.
    """

    def __init__(self, blocks: Sequence[Recipe]) -> None:
        self.blocks = tuple(blocks)

    def __len__(self) -> int:
        return sum(map(len, self.blocks))

    def load(self) -> Pool:
        """Return itself: blocks are read when they are needed."""
        return self

    @property
    def version(self) -> str:
        """Versions of the blocks' files."""
        return version_of_all(self.blocks)

    def as_they_lie(self, start: int, stop: int) -> list[Recipe]:
        """Return the blocks of the samples from ``start`` up to ``stop`` before any epoch."""
        return cut(self.blocks, start, stop)

    def dealt(self, start: int, stop: int, seed: int, epoch: int) -> list[Recipe]:
        """Return the blocks of the samples from ``start`` up to ``stop`` in an epoch's row."""
        order = generator(seed, "pool", epoch).permutation(len(self.blocks))
        return cut([self.blocks[i] for i in order], start, stop)


def ordered(samples: SampleSet, shuffle: str) -> SampleSet:
    """Return samples as a fit with ``shuffle`` "global" or "local" draws them.

    "global" pools the blocks of all partitions, but not of samples in the caller's memory: these
    stay on the worker that they were sent to.
    """
    if shuffle not in ("global", "local"):
        raise SettingsError(f"shuffle: expected 'global' or 'local', found {shuffle!r}")
    recipes = samples.recipes
    blocked = [recipe for recipe in recipes if isinstance(recipe, BlockRecipe)]
    if shuffle == "local":
        return samples if len(blocked) == len(recipes) else samples.stream()
    if len(blocked) < max(2, len(recipes)) or any(recipe.in_memory for recipe in recipes):
        return samples
    pool = Pool([block for recipe in blocked for block in recipe.blocks])
    bounds = pairwise(accumulate(map(len, blocked), initial=0))
    return type(samples)([PooledRecipe(pool, a, b) for a, b in bounds], samples.functions)


def block_lengths(samples: SampleSet) -> dict[str, Any]:
    """Return the lengths of the blocks, if there are any; the order depends on them."""
    recipes = samples.recipes
    if isinstance(recipes[0], PooledRecipe):
        return {"pool": [len(block) for block in recipes[0].pool.blocks]}
    blocked = [recipe for recipe in recipes if isinstance(recipe, BlockRecipe)]
    return {"blocks": [[len(block) for block in one.blocks] for one in blocked]} if blocked else {}
