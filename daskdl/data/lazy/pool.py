"""Pool: the blocks of all partitions of a set, dealt out to these anew in every epoch."""

from __future__ import annotations

from collections.abc import Sequence

from daskdl.data.lazy.joined import cut
from daskdl.data.random import generator
from daskdl.data.recipe import Loadable, Recipe, version_of_all


class Pool(Loadable):
    """Blocks that any worker can read, of which each partition reads others in every epoch.

    The blocks are put into an order drawn from (seed, epoch), and the row of their samples is cut
    where it always is: so each partition has as many samples in every epoch, and all together have
    every sample once. A block at a cut is read by both sides, each its part.

    A graph carries it once for all partitions that stand on it, since it is an input of theirs.

    Parameters
    ----------
    blocks : sequence of Recipe
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
