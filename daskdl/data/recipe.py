"""Recipe: the way any worker loads a partition, and its size and kind before it is loaded."""

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
    """A thing that any worker can load, the same each time; it pickles."""

    @abstractmethod
    def load(self) -> Any:
        """Load it, here."""

    @property
    def inputs(self) -> Sequence[Loadable]:
        """Other loadables that it is made of; see :class:`~daskdl.data.lazy.derived.Derived`."""
        return ()

    @property
    def in_memory(self) -> bool:
        """Whether it carries its data, so that it is better sent than loaded."""
        return False

    @property
    def underlying(self) -> Loadable:
        """The loadable itself, without a wrapper that only counts its samples."""
        return self

    @property
    def version(self) -> str:
        """State of the file that it reads: size and time, or the store's ETag; "" if untold."""
        return ""

    @property
    def futures(self) -> tuple[Future, ...]:
        """Data that lie on workers already, and that it needs."""
        return tuple(chain.from_iterable(one.futures for one in self.inputs))

    @property
    def is_lazy(self) -> bool:
        """Whether tasks of Dask's have to be computed for it."""
        return any(one.is_lazy for one in self.inputs)


class Recipe(Loadable):
    """Way to load a partition; it pickles, and every worker loads the same from it.

    A source of one's own says how many samples there are (``__len__``) and loads them
    (:meth:`load`). Everything else has a default, which a source replaces where it can do better:
    :meth:`part` where it can read a part without the rest, :attr:`nbytes` where it knows.

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
        """Load the samples, here."""

    @abstractmethod
    def __len__(self) -> int: ...

    @property
    def nbytes(self) -> int:
        """Bytes of the samples, as far as the source tells; 0 if it does not."""
        return 0

    @property
    def schema(self) -> Schema | None:
        """Shape and dtype of each array of a sample, if the source tells before it is loaded."""
        return None

    @property
    def decodes(self) -> bool:
        """Whether a function makes the samples of what is read.

        Their bytes then differ from :attr:`nbytes`, as those of images from those of their files.
        """
        return any(one.decodes for one in self.inputs if isinstance(one, Recipe))

    @property
    def is_shuffled(self) -> bool:
        """Whether it stands on a partition of ``SampleSet.shuffle``, for which all are read."""
        return any(one.is_shuffled for one in self.inputs if isinstance(one, Recipe))

    @property
    def is_drawn(self) -> bool:
        """Whether each epoch draws its samples anew from more than there are in one."""
        return False

    @property
    def is_counted(self) -> bool:
        """Whether the number of samples is known."""
        return True

    @property
    def known(self) -> Recipe:
        """The recipe that knows the number of samples, if these were counted."""
        return self

    @property
    def pieces(self) -> Sequence[Recipe]:
        """Recipes that hold the samples one after the other; itself if it is not joined of any."""
        return (self,)

    def part(self, start: int, stop: int) -> Recipe | None:
        """Return the recipe of the samples from ``start`` up to ``stop``, if it can be read alone.

        By default whoever loads a part loads all samples and lets go of the others; see
        :func:`daskdl.data.lazy.derived.part_of`.
        """
        return None

    def select(self, positions: Positions, count: int) -> Recipe | None:
        """Return the recipe of some samples, in any order, if these can be read alone.

        Parameters
        ----------
        positions : callable
            From the number of samples to the positions of those that are wanted. It pickles, and
            is called where the samples are loaded.
        count : int
            How many these are.
        """
        return None

    def followed_by(self, others: Sequence[Recipe]) -> Recipe | None:
        """Return the recipe of these samples and of others' behind them, if it has one for that."""
        return None

    def for_sending(self) -> Recipe:
        """Return a recipe of the same samples without data that they do not need."""
        return self


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


class Excerpt(Recipe):
    """Base of recipes, frozen dataclasses, that load samples ``start`` up to ``stop`` of more."""

    start: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.start

    def part(self, start: int, stop: int) -> Self:
        """Return the recipe of the samples from ``start`` up to ``stop`` of these."""
        return replace(self, start=self.start + start, stop=self.start + stop)  # type: ignore[type-var]


def version_of_all(recipes: Sequence[Loadable]) -> str:
    """Return a digest of the versions of all files behind recipes; "" if none is told."""
    seen, told = set[int](), dict[str, None]()
    waiting: list[Loadable] = list(reversed(recipes))
    while waiting:
        recipe = waiting.pop().underlying
        if id(recipe) not in seen:
            seen.add(id(recipe))
            if recipe.version:
                # Of each file once, however the samples are cut.
                told |= dict.fromkeys(recipe.version.splitlines())
            waiting.extend(reversed(recipe.inputs))
    return hashlib.sha256("\n".join(told).encode()).hexdigest()[:16] if told else ""
