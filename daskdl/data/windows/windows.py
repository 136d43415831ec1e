"""Windows: samples cut out of arrays of any axes, such as images and masks of a scene."""

from __future__ import annotations

import math
import uuid
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from dask import is_dask_collection
from numpy.typing import NDArray

from daskdl.compat.dask import Task
from daskdl.data.lazy.from_tasks import FromTasks
from daskdl.data.partition import Batch, Indices, Partition
from daskdl.data.recipe import Positions, Recipe, Schema
from daskdl.data.sources.collections import tasks_by_partition

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class Axis(NamedTuple):
    """One axis along which windows lie, in cells of the first array."""

    name: Hashable
    length: int
    size: int  # of a window
    step: int  # from one window to the next
    keep: bool  # whether a sample has the axis; one of single places it has not


@dataclass(frozen=True)
class Windowed:
    """Arrays that windows are cut out of together.

    Arrays are numpy's, Dask's, zarr's or xarray Variables, which are read when they are sliced.
    ``scales`` has, for each array and each of its axes, the number of the window's axis and the
    array's cells for each cell of the first one; None for an axis that is whole in every sample.
    ``version`` has a line with a digest of the files of each zarr array.
    """

    arrays: Mapping[str, Any] = field(repr=False)
    axes: tuple[Axis, ...]
    scales: Mapping[str, Sequence[tuple[int, Fraction] | None]]
    version: str = ""

    @property
    def is_dask(self) -> bool:
        """Whether any array is a Dask array."""
        return any(map(is_dask_collection, self.arrays.values()))

    def region(self, name: str, origins: Ints) -> tuple[slice, ...]:
        """Return the smallest part of an array with the windows at these origins (n, axes)."""
        low = origins.min(axis=0, initial=0 if not len(origins) else np.iinfo(np.int64).max)
        high = origins.max(axis=0, initial=0) + [axis.size for axis in self.axes]
        ranges = [(int(a), int(b)) for a, b in zip(low, high, strict=True)]
        return tuple(
            slice(None) if scale is None else slice(*(int(n * scale[1]) for n in ranges[scale[0]]))
            for scale in self.scales[name]
        )

    def nbytes(self, origins: Ints) -> int:
        """Return the bytes of these parts of all arrays."""
        total = 0
        for name, array in self.arrays.items():
            region = zip(self.region(name, origins), array.shape, strict=True)
            cells = math.prod(len(range(n)[part]) for part, n in region)
            total += cells * np.dtype(array.dtype).itemsize
        return total

    def cut(self, origins: Ints, weights: Floats) -> Cut:
        """Return the function that makes a partition of the parts with the windows."""
        return Cut(self.axes, self.scales, _from_zero(origins), weights)

    @property
    def schema(self) -> Schema:
        """Shape of a sample and dtype of each array."""
        shapes = {}
        for name, array in self.arrays.items():
            shape = []
            for n, scale in zip(array.shape, self.scales[name], strict=True):
                if scale is None:
                    shape.append(n)
                elif self.axes[scale[0]].keep:
                    shape.append(int(self.axes[scale[0]].size * scale[1]))
            shapes[name] = tuple(shape), np.dtype(array.dtype)
        return shapes


@dataclass(frozen=True)
class Cut:
    """Make a partition of parts of arrays; the origins of its windows count within these parts.

    The last origins have ``weights`` (k,), by which each epoch draws its windows; the others are
    drawn once.
    """

    axes: tuple[Axis, ...]
    scales: Mapping[str, Sequence[tuple[int, Fraction] | None]]
    origins: Ints = field(repr=False)
    weights: Floats = field(repr=False)

    def __call__(self, *parts: Any) -> WindowPartition:
        """Return the partition."""
        return WindowPartition(dict(zip(self.scales, map(np.asarray, parts), strict=True)), self)


@dataclass(frozen=True)
class WindowPartition(Partition):
    """Windows over arrays that are in memory once, even if windows overlap."""

    arrays: Mapping[str, Any] = field(repr=False)
    cut: Cut

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return sum(array.nbytes for array in self.arrays.values())

    def __len__(self) -> int:
        return len(self.cut.origins) - len(self.weights)

    @property
    def weights(self) -> Floats:
        """Times that an epoch draws each of the last windows."""
        return self.cut.weights

    def take(self, indices: Indices) -> Batch:
        """Return the windows at these positions, stacked."""
        return {name: self._stacked(name, np.asarray(indices)) for name in self.arrays}

    def _stacked(self, name: str, indices: Indices) -> Any:
        axes, origins = self.cut.axes, self.cut.origins[indices]
        windows = []
        # Of no window there is still what it is made of.
        for origin in origins if len(origins) else np.zeros((1, len(axes)), np.int64):
            index: list[Any] = []
            for scale in self.cut.scales[name]:
                if scale is None:
                    index.append(slice(None))
                    continue
                i, of = scale
                start, size = int(int(origin[i]) * of), int(axes[i].size * of)
                index.append(slice(start, start + size) if axes[i].keep else start)
            windows.append(self.arrays[name][tuple(index)])
        return np.stack(windows)[: len(origins)]


class Windows(Recipe):
    """Recipe of the windows at some origins, int64 (n + k, axes), in cells of the first array.

    Each epoch draws n of the last windows by ``weights`` float64 (k,); without weights it has all
    windows.
    """

    def __init__(self, windowed: Windowed, origins: Ints, weights: Floats) -> None:
        self.windowed, self.origins, self.weights = windowed, origins, weights

    def __len__(self) -> int:
        return len(self.origins) - len(self.weights)

    @property
    def is_drawn(self) -> bool:
        """Whether there are weights, by which each epoch draws."""
        return len(self.weights) > 0

    @property
    def version(self) -> str:
        """Version of the arrays of zarr."""
        return self.windowed.version

    @property
    def once(self) -> Ints:
        """Origins (n, axes) of the windows of one draw, for everything but a fit."""
        return self.origins[: len(self)]

    @property
    def nbytes(self) -> int:
        """Bytes of the parts of the arrays that hold the windows."""
        return self.windowed.nbytes(self.origins)

    @property
    def schema(self) -> Schema:
        """Shape of a sample and dtype of each array."""
        return self.windowed.schema

    def where(self, keep: NDArray[np.bool_]) -> Windows:
        """Return the recipe of the windows where ``keep`` (n + k,) is true."""
        weights = self.weights[keep[len(self) :]]
        return recipe_of(self.windowed, self.origins[keep], weights)

    def part(self, start: int, stop: int) -> Windows:
        """Return the recipe of the windows from ``start`` up to ``stop``."""
        if not len(self.weights):
            return recipe_of(self.windowed, self.once[start:stop])
        ends = np.cumsum(self.weights) / self.weights.sum() * len(self)
        weights = np.minimum(ends, stop) - np.maximum(np.append(0, ends[:-1]), start)
        origins = np.concatenate([self.once[start:stop], self.origins[len(self) :][weights > 0]])
        return recipe_of(self.windowed, origins, weights[weights > 0])

    def select(self, positions: Positions, count: int) -> Windows:
        """Return the recipe of some windows of the one draw."""
        return recipe_of(self.windowed, self.once[positions(len(self))])


class StoredWindows(Windows):
    """Windows of arrays in memory, or in a store that workers read."""

    @property
    def in_memory(self) -> bool:
        """Whether it contains an array's numbers."""
        return any(isinstance(a, np.ndarray) for a in self.windowed.arrays.values())

    def load(self) -> WindowPartition:
        """Read the parts of the arrays with the windows."""
        windowed, origins = self.windowed, self.origins
        parts = (_read(a, windowed.region(n, origins)) for n, a in windowed.arrays.items())
        return windowed.cut(origins, self.weights)(*parts)

    def for_sending(self) -> Recipe:
        """Return the same windows with only their parts of the arrays in memory."""
        windowed, origins = self.windowed, self.origins
        if not all(isinstance(array, np.ndarray) for array in windowed.arrays.values()):
            return self
        parts = {n: _read(a, windowed.region(n, origins)) for n, a in windowed.arrays.items()}
        part = Windowed(parts, windowed.axes, windowed.scales)
        return StoredWindows(part, _from_zero(origins), self.weights)


class DaskWindows(Windows, FromTasks):
    """Windows of Dask arrays, computed by the arrays' tasks."""

    def __init__(self, windowed: Windowed, origins: Ints, weights: Floats) -> None:
        Windows.__init__(self, windowed, origins, weights)
        self.transform = windowed.cut(origins, weights)

    @cached_property
    def _parts(self) -> list[tuple[dict[Any, Any], Any]]:
        parts = []
        for name, array in self.windowed.arrays.items():
            region = self.windowed.region(name, self.origins)
            if is_dask_collection(array):
                parts += tasks_by_partition(array[region].rechunk(-1))
                continue
            key = f"window-{uuid.uuid4().hex}"
            array = array[region] if isinstance(array, np.ndarray) else array
            region = (slice(None),) if isinstance(array, np.ndarray) else region
            parts.append(({key: Task(key, _read, array, region)}, key))
        return parts

    @cached_property
    def tasks(self) -> Mapping[Any, Any]:  # type: ignore[override]
        """Tasks behind the parts of the arrays, made when they are asked for."""
        return {key: task for tasks, _ in self._parts for key, task in tasks.items()}

    @cached_property
    def keys(self) -> tuple[Any, ...]:  # type: ignore[override]
        """Keys of the parts of the arrays."""
        return tuple(key for _, key in self._parts)


def _from_zero(origins: Ints) -> Ints:
    return origins - origins.min(axis=0) if len(origins) else origins


def _read(array: Any, region: tuple[slice, ...]) -> Any:
    return np.asarray(array[region])


def recipe_of(windowed: Windowed, origins: Ints, weights: Floats | None = None) -> Windows:
    """Return the recipe of windows; see :class:`Windows`."""
    kind = DaskWindows if windowed.is_dask else StoredWindows
    return kind(windowed, origins, np.empty(0) if weights is None else weights)
