"""Statistics of a table, column by column, that merge over its partitions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from daskdl.data.tabular.columns import DAY, Value, as_numbers, as_seconds, as_value

#: Different values of a column that are counted; beyond them those that came last are not.
MOST_COUNTED = 1_000_000


@dataclass(frozen=True)
class Moments:
    """Count, mean and spread of a column's numbers, or of the seconds of times."""

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0  # sum of the squared distances from the mean
    missing: int = 0
    hours: bool = False

    @classmethod
    def of(cls, series: Any, kind: str) -> Moments:
        """Return the statistics of one column."""
        values = as_seconds(series) if kind == "date" else as_numbers(series)
        there = values[np.isfinite(values)]
        if not there.size:
            return cls(missing=values.size)
        mean = float(there.mean())
        hours = kind == "date" and bool((there % DAY).any())
        squares = float(np.square(there - mean).sum())
        return cls(there.size, mean, squares, values.size - there.size, hours)

    def merged(self, other: Moments) -> Moments:
        """Return the statistics of both together (T. Chan et al., Updating Formulae, 1979)."""
        count = self.count + other.count
        if not other.count or not self.count:
            one = self if self.count else other
            missing = self.missing + other.missing
            return Moments(one.count, one.mean, one.squares, missing, one.hours)
        away = other.mean - self.mean
        mean = self.mean + away * other.count / count
        squares = self.squares + other.squares + away**2 * self.count * other.count / count
        hours = self.hours or other.hours
        return Moments(count, mean, squares, self.missing + other.missing, hours)

    @property
    def scale(self) -> float:
        """Standard deviation; 1 if all are equal."""
        return float(np.sqrt(self.squares / max(1, self.count))) or 1.0


@dataclass(frozen=True)
class Values:
    """Counts of each value of a column, and of the missing ones."""

    counts: Counter[Value] = field(default_factory=Counter)
    missing: int = 0

    @classmethod
    def of(cls, series: Any, kind: str) -> Values:
        """Return the statistics of one column."""
        counted = series.value_counts(dropna=True)
        counts = Counter({as_value(v): int(n) for v, n in counted.items() if n})
        return cls(counts, int(series.isna().sum()))

    def merged(self, other: Values) -> Values:
        """Return the statistics of both together."""
        both = self.counts + other.counts
        if len(both) > MOST_COUNTED:
            both = Counter(dict(both.most_common(MOST_COUNTED)))
        return Values(both, self.missing + other.missing)

    def most(self, rare: int, most: int) -> list[Value]:
        """Return the values that occur at least ``rare`` times, the most frequent first."""
        often = [(n, v) for v, n in self.counts.items() if n >= rare]
        often.sort(key=lambda pair: (-pair[0], type(pair[1]).__name__, pair[1]))
        return [value for _, value in often[:most]]


Statistics = dict[str, Moments | Values]


def statistics_of(frame: Any, kinds: Mapping[str, str]) -> Statistics:
    """Return the statistics of each column of a pandas DataFrame, by its kind."""
    return {
        name: (Values if kind == "category" else Moments).of(frame[name], kind)
        for name, kind in kinds.items()
    }


def merged(parts: Sequence[Statistics]) -> Statistics:
    """Return the statistics of several parts together, added in their order."""
    first, *others = parts
    together = dict(first)
    for other in others:
        for name, one in other.items():
            together[name] = together[name].merged(one)  # type: ignore[arg-type]
    return together


def statistics(frame: Any, kinds: Mapping[str, str]) -> Statistics:
    """Return the statistics of a pandas or Dask DataFrame, in one pass over its partitions."""
    if not hasattr(frame, "__dask_graph__"):
        return statistics_of(frame, kinds)
    import dask

    one, join = dask.delayed(statistics_of), dask.delayed(merged)
    parts = [one(part, kinds) for part in frame[list(kinds)].to_delayed()]
    while len(parts) > 1:
        parts = [join(parts[i : i + 8]) for i in range(0, len(parts), 8)]
    (merged_parts,) = dask.compute(*parts)
    whole: Statistics = merged_parts
    return whole
