"""Recipe: how any worker loads a partition, and its size and schema before it is loaded."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from daskdl.data.partition import ColumnPartition, Indices, Partition

if TYPE_CHECKING:
    from distributed import Future

#: Shape of a sample and dtype of each array by name; -1 for an axis of any length.
Schema = Mapping[str, tuple[tuple[int, ...], np.dtype[Any]]]

#: From the number of samples of a partition to the positions of some of them, in their order.
Positions = Callable[[int], Indices]


class Loadable(ABC):
    """An object that any worker can load, with the same result each time; it pickles."""

    @abstractmethod
    def load(self) -> Any:
        """Load it in this process."""

    @property
    def inputs(self) -> Sequence[Loadable]:
        """Loadables that it is derived from; see :class:`~daskdl.data.lazy.derived.Derived`."""
        return ()

    @property
    def in_memory(self) -> bool:
        """Whether it contains its data, so that it is sent rather than loaded."""
        return False

    @property
    def underlying(self) -> Loadable:
        """The loadable itself, without a wrapper that only counts its samples."""
        return self

    @property
    def version(self) -> str:
        """State of its file: size and time, or the store's ETag; "" if unknown."""
        return ""

    @property
    def futures(self) -> tuple[Future, ...]:
        """Data on workers that it needs."""
        return tuple(chain.from_iterable(one.futures for one in self.inputs))

    @property
    def is_lazy(self) -> bool:
        """Whether it needs Dask's own tasks to be computed."""
        return any(one.is_lazy for one in self.inputs)


class Recipe(Loadable):
    """Describes how a partition is loaded; it pickles, and every worker loads the same samples.

    A source of your own defines the number of samples (``__len__``) and loads them (:meth:`load`).
    Everything else has a default. A source may replace it: :meth:`part` if it can read a part
    without the rest, :attr:`nbytes` if it knows its size.

    Examples
    --------
    >>> import numpy as np
    >>> from daskdl.data import Arrays, Recipe, SampleSet
    >>> class Squares(Recipe):
    ...     def __init__(self, start, stop):
    ...         self.start, self.stop = start, stop
    ...
    ...     def __len__(self):
    ...         return self.stop - self.start
    ...
    ...     def load(self):
    ...         x = np.arange(self.start, self.stop)
    ...         return Arrays({"x": x, "y": x**2})
    >>> SampleSet([Squares(0, 3), Squares(3, 5)]).head(4)["y"]
    array([0, 1, 4, 9])
    """

    @abstractmethod
    def load(self) -> Partition:
        """Load the samples in this process."""

    @abstractmethod
    def __len__(self) -> int: ...

    @property
    def nbytes(self) -> int:
        """Bytes of the samples; 0 if the source does not know."""
        return 0

    @property
    def schema(self) -> Schema | None:
        """Shape and dtype of each array of a sample, if the source knows without loading."""
        return None

    @property
    def decodes(self) -> bool:
        """Whether a function makes the samples, such as a decoder.

        Their bytes then differ from :attr:`nbytes`, as images differ from their files.
        """
        return any(one.decodes for one in self.inputs if isinstance(one, Recipe))

    @property
    def is_shuffled(self) -> bool:
        """Whether it needs a partition of ``SampleSet.shuffle``, which reads all partitions."""
        return any(one.is_shuffled for one in self.inputs if isinstance(one, Recipe))

    @property
    def is_drawn(self) -> bool:
        """Whether each epoch draws its samples anew from a larger number."""
        return False

    @property
    def is_counted(self) -> bool:
        """Whether the number of samples is known."""
        return True

    @property
    def known(self) -> Recipe:
        """The recipe with the number of samples, if it was counted."""
        return self

    @property
    def pieces(self) -> Sequence[Recipe]:
        """Recipes that this one joins; itself if it joins none."""
        return (self,)

    def part(self, start: int, stop: int) -> Recipe | None:
        """Return the recipe of the samples from ``start`` up to ``stop``, if it can be read alone.

        By default loading a part loads all samples and frees the others; see
        :func:`daskdl.data.lazy.derived.part_of`.
        """
        return None

    def select(self, positions: Positions, count: int) -> Recipe | None:
        """Return the recipe of some samples, in any order, if these can be read alone.

        Parameters
        ----------
        positions : callable
            From the number of samples to the wanted positions. It pickles, and is called where the
            samples are loaded.
        count : int
            Number of these positions.
        """
        return None

    def followed_by(self, others: Sequence[Recipe]) -> Recipe | None:
        """Return the recipe of these samples followed by others, if there is a special one."""
        return None

    def for_sending(self) -> Recipe:
        """Return a recipe of the same samples without unneeded data."""
        return self


class Arrays(ColumnPartition, Recipe):
    """Named columns with a common first axis: a partition, and its own recipe.

    Parameters
    ----------
    arrays : dict of array or Ragged
    bad : tuple of str
        Names of bad records that were left out, each with the reason.

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


class Excerpt(Recipe):
    """Base of recipes, frozen dataclasses, that load samples ``start`` up to ``stop``."""

    start: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.start

    def part(self, start: int, stop: int) -> Self:
        """Return the recipe of the samples from ``start`` up to ``stop`` of these."""
        return replace(self, start=self.start + start, stop=self.start + stop)  # type: ignore[type-var]


def version_of_all(recipes: Sequence[Loadable]) -> str:
    """Return a digest of the versions of all files of recipes; "" if none is known."""
    seen, versions = set[int](), dict[str, None]()
    waiting: list[Loadable] = list(reversed(recipes))
    while waiting:
        recipe = waiting.pop().underlying
        if id(recipe) not in seen:
            seen.add(id(recipe))
            if recipe.version:
                # Of each file once, however the samples are cut.
                versions |= dict.fromkeys(recipe.version.splitlines())
            waiting.extend(reversed(recipe.inputs))
    return hashlib.sha256("\n".join(versions).encode()).hexdigest()[:16] if versions else ""
