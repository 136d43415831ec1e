"""Pool: the blocks of all streams of a set, dealt out to these anew in every epoch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from daskdl.data.partition import Recipe, cut
from daskdl.data.random import generator


@dataclass(frozen=True, eq=False)
class Pool:
    """Blocks that any worker can read, of which each stream reads others in every epoch.

    The blocks are put into an order drawn from (seed, epoch), and the row of their samples is cut
    where it always is: so each stream has as many samples in every epoch, and all together have
    every sample once. A block at a cut is read by both sides, each its part.

    It is a recipe of itself, so that a graph carries it once for all streams that stand on it.

    Parameters
    ----------
    blocks : sequence of Recipe
    """

    blocks: Sequence[Recipe] = field(repr=False)

    in_memory = False
    nbytes = 0

    def __len__(self) -> int:
        return sum(map(len, self.blocks))

    def part(self, start: int, stop: int) -> Pool:
        """Return one of the samples from ``start`` up to ``stop``."""
        return Pool(self.as_they_lie(start, stop))

    def load(self) -> Pool:
        """Return itself."""
        return self

    def as_they_lie(self, start: int, stop: int) -> list[Recipe]:
        """Return the blocks of the samples from ``start`` up to ``stop`` before any epoch."""
        return cut(self.blocks, start, stop)

    def dealt(self, start: int, stop: int, seed: int, epoch: int) -> list[Recipe]:
        """Return the blocks of the samples from ``start`` up to ``stop`` in an epoch's row."""
        order = generator(seed, "pool", epoch).permutation(len(self.blocks))
        return cut([self.blocks[i] for i in order], start, stop)
