"""The writer of a rain store: frames go in one by one, and every state on disk can be read.

What readers see of a store is its consolidated metadata, one file that is replaced in one stroke.
So a frame is appended by writing its chunk first, then the times, and these metadata last: whoever
is killed in between leaves chunks that no reader knows of and that the next writer overwrites.
Frames that belong before the last time of the store go into a copy beside it (hard links to the
chunks that stay as they are), which takes its place when it is complete.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import time as clock
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import DataError
from nowcast.rain.cf import TIME_ENCODING, history_line, rain_dataset
from nowcast.rain.grid import Grid
from nowcast.rain.replacing import beside, previous, remove
from nowcast.rain.store import consolidate, open_rain, write_zarr

if TYPE_CHECKING:
    import zarr

# Times are one small file that is rewritten at each commit; 8 kB hold a day of 90 s scans.
TIMES_A_CHUNK = 1024
COMMIT_FRAMES = 16
COMMIT_SECONDS = 5.0

Frame = tuple[np.datetime64, NDArray[np.float32]]


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the store at ``path`` for writing, so that two runs do not write it at once.

    Raises
    ------
    DataError
        When another process is writing it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = path.with_name(f".{path.name}.lock")
    with lock.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DataError(f"{path}: another nowcast ingest is writing it; wait for it") from None
        try:
            _tidy(path)
            yield
        finally:
            lock.unlink(missing_ok=True)


def _tidy(path: Path) -> None:
    """Finish or undo what a killed run left beside the store."""
    old = previous(path)
    if old.is_dir() and not path.exists():
        os.rename(old, path)
    remove(old)
    for left in path.parent.glob(f".{path.name}.*.partial"):
        remove(left)


def create(
    path: Path,
    grid: Grid,
    first: Frame,
    *,
    attributes: dict[str, Any],
    global_attributes: dict[str, Any],
) -> None:
    """Create a rain store with one frame: beside, then renamed."""
    time, rain = first
    dataset = rain_dataset(
        grid,
        np.array([time], "datetime64[ns]"),
        rain[np.newaxis],
        attributes=attributes,
        global_attributes=global_attributes,
    )
    write_zarr(dataset, path, encoding={"time": TIME_ENCODING | {"chunks": (TIMES_A_CHUNK,)}})


def append(path: Path, frames: Iterable[Frame]) -> int:
    """Append frames that are later than all in the store, in order of time; return how many.

    Frames are taken one at a time and committed every few, also those before an exception that
    ``frames`` raises.
    """
    store = _Arrays.open(path, path)
    times = list(store.times)
    committed = len(times)
    deadline = clock.monotonic() + COMMIT_SECONDS
    try:
        for time, rain in frames:
            store.reserve(committed + COMMIT_FRAMES)
            store.rain[len(times)] = rain
            times.append(time)
            if len(times) - committed == COMMIT_FRAMES or clock.monotonic() > deadline:
                store.commit(times, known=committed)
                committed = len(times)
                deadline = clock.monotonic() + COMMIT_SECONDS
    finally:
        added = len(times) - len(store.times)
        if added:
            store.commit(times, known=committed, history=f"appended {added} scans")
    return added


def insert(path: Path, frames: Iterable[Frame], *, scheduled: int) -> int:
    """Put frames, in order of time, where they belong among those of a store; return how many.

    At most ``scheduled`` come. The store is rebuilt beside and replaced at the end: a killed run
    leaves it as it was.
    """
    with beside(path) as temporary:
        _link_tree(path, temporary, without="rain_rate/c")
        new = _Arrays.open(path, temporary)
        old_times = new.times
        new.reserve(len(old_times) + scheduled)
        times: list[np.datetime64] = []
        kept = inserted = 0

        def keep_until(limit: int) -> None:
            nonlocal kept
            for index in range(kept, limit):
                _link_chunk(path, index, temporary, len(times))
                times.append(old_times[index])
            kept = limit

        for time, rain in frames:
            keep_until(int(np.searchsorted(old_times, time)))
            new.rain[len(times)] = rain
            times.append(time)
            inserted += 1
        keep_until(len(old_times))
        new.commit(times, known=0, history=f"inserted {inserted} scans")
    return inserted


class _Arrays:
    """The arrays of a store that grow: ``rain_rate`` and ``time``."""

    def __init__(self, path: Path, group: zarr.Group, times: NDArray[np.datetime64]) -> None:
        self.path = path
        self.times = times
        self.rain: Any = group["rain_rate"]
        self.time: Any = group["time"]
        self.history = str(group.attrs.get("history", ""))

    @classmethod
    def open(cls, source: Path, path: Path) -> _Arrays:
        import zarr

        with open_rain(source) as dataset:
            times = dataset["time"].values.astype("datetime64[ns]")
        group = zarr.open_group(path, mode="r+", use_consolidated=True)
        arrays = cls(path, group, times)
        shape = arrays.rain.shape
        units = arrays.time.attrs.get("units", "")
        if arrays.rain.chunks != (1, *shape[1:]) or not units.startswith(
            "seconds since 1970-01-01"
        ):
            raise DataError(
                f"{source}: expected a store made by nowcast ingest, with one chunk a time and "
                f"seconds since 1970-01-01, found chunks {arrays.rain.chunks} and {units!r}; "
                "ingest into a new store"
            )
        return arrays

    @property
    def count(self) -> int:
        return int(self.rain.shape[0])

    def reserve(self, count: int) -> None:
        """Let ``rain`` take frames up to ``count``; readers do not see it before a commit."""
        if count != self.count:
            self.rain.resize((count, *self.rain.shape[1:]))

    def commit(self, times: list[np.datetime64], *, known: int, history: str = "") -> None:
        """Let readers see the frames of ``times``, of which the first ``known`` are unchanged."""
        self.time.resize((len(times),))
        self.time[known:] = np.array(times[known:], "datetime64[s]").astype(np.int64)
        self.reserve(len(times))
        lines = (history_line(history), self.history) if history else (self.history,)
        consolidate(self.path, {"history": "\n".join(line for line in lines if line)})


def _link_tree(source: Path, target: Path, *, without: str) -> None:
    """Copy a store's small files; the chunks of ``without`` are left out."""
    skipped = source / without

    def ignore(folder: str, names: list[str]) -> set[str]:
        return {name for name in names if Path(folder) / name == skipped}

    shutil.copytree(source, target, ignore=ignore)


def _link_chunk(source: Path, index: int, target: Path, new_index: int) -> None:
    """Give the chunk of one time to another store; a time that is all missing has none."""
    chunk = source / "rain_rate" / "c" / str(index) / "0" / "0"
    if not chunk.exists():
        return
    destination = target / "rain_rate" / "c" / str(new_index) / "0" / "0"
    destination.parent.mkdir(parents=True, exist_ok=True)
    try:
        # zarr replaces chunks, it never writes into them, so that two names may share one file.
        os.link(chunk, destination)
    except OSError:
        shutil.copyfile(chunk, destination)
