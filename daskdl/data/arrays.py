"""Arrays: named columns in memory, a partition and its own recipe."""

from __future__ import annotations

from daskdl.data.partition import ColumnPartition, Indices
from daskdl.data.recipe import Recipe


class Arrays(ColumnPartition, Recipe):
    """Named columns with a common first axis: a partition, and its own recipe.

    Parameters
    ----------
    arrays : dict of array or Ragged
    bad : tuple of str
        Names of records that were left out as they are no samples, each with the reason.

    Examples
    --------
    >>> part = Arrays({"x": np.arange(6.0).reshape(3, 2), "y": np.array([0, 1, 0])})
    >>> len(part), part.take(np.array([2]))["x"]
    (3, array([[4., 5.]]))
    """

    in_memory = True

    def part(self, start: int, stop: int) -> Arrays:
        """Return views of the samples from ``start`` up to ``stop``."""
        return Arrays({name: array[start:stop] for name, array in self.arrays.items()})

    def pick(self, indices: Indices) -> Arrays:
        """Return copies of the samples at these positions."""
        return Arrays(self.take(indices), self.bad)

    def load(self) -> Arrays:
        """Return itself."""
        return self
