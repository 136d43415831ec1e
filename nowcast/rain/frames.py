"""Frames (time, y, x) of a store or an array, counted chunk by chunk and loaded by windows."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from daskdl.cluster import bounded
from daskdl.cluster.current import current_client
from daskdl.data.partition import Batch, Indices, Partition
from daskdl.data.recipe import Positions, Recipe
from daskdl.data.sources.xarray import open_zarr
from daskdl.errors import ClusterError, DataError
from daskdl.files import address_of
from nowcast.rain.store import damage_named, in_order

#: Bytes of frames that are counted at once.
BLOCK_BYTES = 64_000_000


@dataclass(frozen=True)
class FrameSource:
    """Source of frames.

    A store's frames are identified by their times, and found when they are read, since the store
    may have grown. A store that was replaced by another one is refused.
    """

    data: Any  #: Path, or DataArray (time, y, x).
    variable: str  #: In the store.
    name: str  #: For messages.
    time: NDArray[np.datetime64] = field(repr=False)  #: (n,)
    shape: tuple[int, int, int]  #: (n, ny, nx)
    store: str = ""  #: Attribute ``id`` of the store at the path, which identifies it.

    @classmethod
    def open(cls, data: str | os.PathLike[str] | xr.Dataset | xr.DataArray, variable: str) -> Self:
        """Return the source of frames (time, y, x), checked: numbers, at increasing times."""
        path, name, store = None, "data", ""
        if isinstance(data, str | os.PathLike):
            name = path = address_of(data) or os.fspath(data)
            data = _opened(path)
            store = _id(data)
            if "://" not in path:
                path = os.path.abspath(path)  # workers may have another current folder
        if isinstance(data, xr.Dataset):
            if variable not in data:
                raise DataError(
                    f"{name}: expected a variable {variable!r}, found {sorted(map(str, data))}; "
                    "give its name as variable="
                )
            data = data[variable]
        if not isinstance(data, xr.DataArray):
            raise DataError(
                "nowcast.rain.windows: expected a path, a Dataset or a DataArray, found "
                f"{type(data).__name__}; open it with xarray first"
            )
        if data.ndim != 3 or data.dims[0] != "time" or "time" not in data.coords:
            raise DataError(
                f"{name}: expected {data.name or 'frames'} over (time, y, x) with a time "
                f"coordinate, found {data.dims}; transpose or rename the dimensions"
            )
        time = data["time"].values
        if time.dtype.kind != "M":
            raise DataError(
                f"{name}: expected times as datetime64, found {time.dtype}; "
                "decode them, as xarray.open_dataset(decode_times=True) does"
            )
        time = time.astype("datetime64[ns]")
        if np.isnat(time).any():
            raise DataError(
                f"{name}: expected a time for every frame, found NaT; leave such frames out"
            )
        back = np.flatnonzero(np.diff(time) <= np.timedelta64(0))
        if len(back):
            raise DataError(
                f"{name}: expected increasing times, found {time[back[0] + 1]} after "
                f"{time[back[0]]}; sort the frames and leave one of each time"
            )
        if data.dtype.kind not in "fiub":
            raise DataError(
                f"{name}: expected {data.name or 'frames'} as numbers, found {data.dtype}"
            )
        source = path if path is not None else data.drop_vars(list(data.coords))
        n, ny, nx = data.shape
        return cls(source, variable, name, time, (n, ny, nx), store)

    @property
    def in_memory(self) -> bool:
        """Whether this carries the frames themselves."""
        # xarray has no public word for "already a numpy array".
        return not isinstance(self.data, str) and isinstance(self.data.variable._data, np.ndarray)

    def only(self, frames: NDArray[np.int64]) -> FrameSource:
        """Return a source with only these frames."""
        data = self.data
        if not isinstance(data, str):
            data = data.isel(time=frames)
            if data.chunks is not None:
                import dask

                (data,) = dask.optimize(data)  # without the chunks that others need
        return replace(
            self, data=data, time=self.time[frames], shape=(len(frames), *self.shape[1:])
        )

    def read(self, frames: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return frames (n, ny, nx) float32; raise DataError if the store is missing or damaged."""
        data = self.data
        if isinstance(data, str):
            data, frames = self._stored(frames)
        first, last = int(frames[0]), int(frames[-1]) + 1
        # A slice is read faster than a list, by stores and dask alike.
        picked = slice(first, last) if last - first == len(frames) else frames
        with damage_named(self.name):
            values = data.isel(time=picked)
            if values.chunks is not None:
                # Inside a task: another task for it would wait for this worker's own thread.
                import dask

                values = values.compute(scheduler=dask.get)
            return np.ascontiguousarray(values.values, np.float32)

    def _stored(self, frames: NDArray[np.int64]) -> tuple[xr.DataArray, NDArray[np.int64]]:
        """Return the store's current frames in order of time, and the indices of ``frames``."""
        dataset = _opened(self.data)
        if _id(dataset) != self.store:
            raise DataError(
                f"{self.name}: expected the store that was opened, of id {self.store!r}, found one "
                f"of id {_id(dataset)!r} in its place; open it again"
            )
        times, wanted = dataset["time"].values.astype("datetime64[ns]"), self.time[frames]
        places = np.searchsorted(times, wanted)
        gone = wanted[times[np.minimum(places, len(times) - 1)] != wanted]
        if len(gone):
            raise DataError(
                f"{self.name}: expected the store that was opened, with a frame of {gone[0]}, "
                "found none of that time; open it again"
            )
        return dataset[self.variable], places

    def count(
        self,
        frames: NDArray[np.int64],
        corners: NDArray[np.int64],
        tile: tuple[int, int],
        threshold: float,
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Count the wet and the valid cells of every tile, (len(frames), len(corners)) int64.

        The frames are read block by block, so that memory stays bounded: by the workers of the
        current Dask client if there is one and the frames are in a store, else here.
        """
        at_once = max(1, BLOCK_BYTES // (4 * self.shape[1] * self.shape[2]))
        blocks = (self.only(frames[a : a + at_once]) for a in range(0, len(frames), at_once))
        client = current_client() if isinstance(self.data, str) and len(frames) > at_once else None
        calls = ((block, corners, tile, threshold) for block in blocks)
        counts = []
        for _, result in bounded.in_order(client, count_all, calls, "count"):
            if isinstance(result, bounded.Died):
                raise ClusterError(f"{self.name}: {result.reason}")
            counts.append(result)
        wet, valid = zip(*counts, strict=True)
        return np.concatenate(wet), np.concatenate(valid)


def _opened(path: str) -> xr.Dataset:
    """Open a store, frames in the order of time, without Dask."""
    dataset = open_zarr(path)
    return in_order(dataset) if "time" in dataset.indexes else dataset


def _id(dataset: xr.Dataset) -> str:
    return str(dataset.attrs.get("id", ""))


def count_all(
    source: FrameSource, corners: NDArray[np.int64], tile: tuple[int, int], threshold: float
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Count wet and valid cells of all frames of a source; see :meth:`FrameSource.count`."""
    values = source.read(np.arange(len(source.time)))
    with np.errstate(invalid="ignore"):
        masks = values >= np.float32(threshold), np.isfinite(values)
    rows, columns = corners.T
    counts = []
    for mask in masks:
        # Sums over any rectangle from one table of sums (F. Crow, 1984).
        table = np.zeros((len(values), values.shape[1] + 1, values.shape[2] + 1), np.int64)
        np.cumsum(np.cumsum(mask, axis=1, dtype=np.int64), axis=2, out=table[:, 1:, 1:])
        below, right = rows + tile[0], columns + tile[1]
        counts.append(
            table[:, below, right]
            - table[:, rows, right]
            - table[:, below, columns]
            + table[:, rows, columns]
        )
    return counts[0], counts[1]


@dataclass(frozen=True)
class WindowRecipe(Recipe):
    """Windows over frames that are loaded once, even if windows overlap."""

    source: FrameSource = field(repr=False)
    windows: NDArray[np.int64] = field(repr=False)  #: First frame, row and column of each, (n, 3).
    n_in: int
    n_out: int
    tile: tuple[int, int]  #: (h, w)

    @property
    def frames(self) -> NDArray[np.int64]:
        """Indices of the used frames, increasing."""
        return np.unique(self.windows[:, :1] + np.arange(self.n_in + self.n_out))

    @property
    def nbytes(self) -> int:
        """Bytes of the frames."""
        return 4 * len(self.frames) * self.source.shape[1] * self.source.shape[2]

    @property
    def in_memory(self) -> bool:
        """Whether this carries the frames themselves."""
        return self.source.in_memory

    def __len__(self) -> int:
        return len(self.windows)

    def localised(self) -> WindowRecipe:
        """Return the recipe with only the needed part of its source."""
        frames, windows = self.frames, self.windows.copy()
        windows[:, 0] = np.searchsorted(frames, windows[:, 0])
        return replace(self, source=self.source.only(frames), windows=windows)

    def part(self, start: int, stop: int) -> WindowRecipe:
        """Return the recipe of the windows from ``start`` up to ``stop``."""
        return replace(self, windows=self.windows[start:stop]).localised()

    def select(self, positions: Positions, count: int) -> WindowRecipe:
        """Return the recipe of the windows at these positions."""
        return replace(self, windows=self.windows[positions(len(self))]).localised()

    def load(self) -> Windows:
        """Read the frames, and return their windows."""
        frames, windows = self.frames, self.windows.copy()
        windows[:, 0] = np.searchsorted(frames, windows[:, 0])
        return Windows(self.source.read(frames), windows, self.n_in, self.n_out, self.tile)


@dataclass(frozen=True)
class Windows(Partition):
    """A partition of windows over frames float32 (n, ny, nx), which are in memory once."""

    frames: NDArray[np.float32] = field(repr=False)
    windows: NDArray[np.int64] = field(repr=False)
    n_in: int
    n_out: int
    tile: tuple[int, int]

    @property
    def nbytes(self) -> int:
        """Bytes of the frames."""
        return self.frames.nbytes

    def __len__(self) -> int:
        return len(self.windows)

    def pick(self, indices: Indices) -> Windows:
        """Return the windows at these positions, over the same frames."""
        return replace(self, windows=self.windows[indices])

    def take(self, indices: Indices) -> Batch:
        """Return ``x`` (N, n_in, h, w, 1) and ``y`` (N, n_out, h, w, 1), float32."""
        h, w = self.tile
        x = np.empty((len(indices), self.n_in, h, w, 1), np.float32)
        y = np.empty((len(indices), self.n_out, h, w, 1), np.float32)
        for n, (frame, row, column) in enumerate(self.windows[indices]):
            view = self.frames[
                frame : frame + self.n_in + self.n_out, row : row + h, column : column + w, None
            ]
            x[n], y[n] = view[: self.n_in], view[self.n_in :]
        return {"x": x, "y": y}
