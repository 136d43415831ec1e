"""Ranges of a vector, each of a kind, and the settings of each kind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Ranges:
    """Consecutive ranges of a vector, each of a kind: a parameter, or a group of them.

    ``stops`` has the end of each range, where the next one begins.

    Examples
    --------
    >>> Ranges((3, 10), (0, 1)).part([slice(2, 5), slice(9, 10)])
    Ranges(stops=(1, 4), kinds=(0, 1))
    """

    stops: tuple[int, ...]
    kinds: tuple[int, ...]

    def __iter__(self) -> Iterator[tuple[slice, int]]:
        """Yield (numbers, kind) of each range."""
        start = 0
        for stop, kind in zip(self.stops, self.kinds, strict=True):
            yield slice(start, stop), kind
            start = stop

    @property
    def size(self) -> int:
        """Numbers of the vector."""
        return self.stops[-1] if self.stops else 0

    @property
    def arrays(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Stops and kinds, int64 each."""
        return np.array(self.stops, np.int64), np.array(self.kinds, np.int64)

    def cut(self, block: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Return (starts, stops, kinds) of the ranges, cut also at multiples of ``block``.

        Empty ranges are left out.

        Examples
        --------
        >>> Ranges((3, 10), (0, 1)).cut(4)
        (array([0, 3, 4, 8]), array([ 3,  4,  8, 10]), array([0, 1, 1, 1]))
        """
        ends, kinds = self.arrays
        stops = np.union1d(ends, np.arange(block, self.size, block))
        stops = stops[stops > 0]
        starts = np.concatenate([stops[:0], [0], stops[:-1]])[: len(stops)]
        return starts, stops, kinds[np.searchsorted(ends, stops, "left")]

    def joined(self) -> Ranges:
        """Return the ranges with neighbours of one kind joined, without empty ones."""
        stops: list[int] = []
        kinds: list[int] = []
        for here, kind in self:
            if here.start == here.stop:
                continue
            if kinds and kinds[-1] == kind:
                stops[-1] = here.stop
            else:
                stops.append(here.stop)
                kinds.append(kind)
        return Ranges(tuple(stops), tuple(kinds))

    def part(self, slices: Sequence[slice]) -> Ranges:
        """Return the ranges of the vector that consists of these slices."""
        stops, kinds, total = [], [], 0
        for piece in slices:
            for here, kind in self:
                n = min(here.stop, piece.stop) - max(here.start, piece.start)
                if n > 0:
                    total += n
                    stops.append(total)
                    kinds.append(kind)
        return Ranges(tuple(stops), tuple(kinds)).joined()


@dataclass(frozen=True)
class Grouping:
    """Settings by group of parameters.

    ``ranges`` says which group a number belongs to; None if there is one group. ``rates`` are
    factors of the learning rate in each group. ``decays`` are weight decays; None is the method's.
    """

    ranges: Ranges | None = None
    rates: tuple[float, ...] = (1.0,)
    decays: tuple[float | None, ...] = (None,)


#: One group.
ALONE = Grouping()
