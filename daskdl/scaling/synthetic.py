"""Synthetic samples: as many as one likes, of a few that each worker draws for itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from daskdl.data import SampleSet
from daskdl.data.arrays import Arrays
from daskdl.data.partition import Batch, Indices, Partition
from daskdl.data.random import generator
from daskdl.data.recipe import Excerpt
from daskdl.scaling.workloads import Draw


class Repeated(Partition):
    """A partition of so many samples, which are a few again and again.

    Parameters
    ----------
    few : Arrays
    first : int
        Number of the first sample.
    length : int
    """

    def __init__(self, few: Arrays, first: int, length: int) -> None:
        self._few, self._first, self._length = few, first, length

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self._few.nbytes

    def __len__(self) -> int:
        return self._length

    def take(self, indices: Indices) -> Batch:
        """Return copies of the samples at these positions."""
        return self._few.take((np.asarray(indices) + self._first) % len(self._few))


@dataclass(frozen=True)
class Synthetic(Excerpt):
    """The recipe of a :class:`Repeated` partition: nothing of it is sent to a worker.

    Parameters
    ----------
    draw : callable
        See :class:`~daskdl.scaling.workloads.Workload`.
    seed : int
    held : int
        Samples that are drawn.
    start, stop : int
        The samples' numbers.
    """

    draw: Draw
    seed: int
    held: int
    start: int
    stop: int

    @property
    def nbytes(self) -> int:
        """Bytes that the loaded partition will hold."""
        return self.held * self._drawn(1).nbytes

    def load(self) -> Repeated:
        """Draw."""
        return Repeated(self._drawn(self.held), self.start, len(self))

    def _drawn(self, n: int) -> Arrays:
        x, y = self.draw(generator(self.seed, "synthetic"), n)
        return Arrays({"x": x, "y": y})


def synthetic(draw: Draw, lengths: Sequence[int], held: int) -> SampleSet:
    """Return samples with a partition of each of these lengths, each made of ``held``."""
    return SampleSet([Synthetic(draw, i, held, 0, length) for i, length in enumerate(lengths)])
