"""The writer of a rain store: it adds frames one by one, and every state on disk is readable.

Readers see a store through its consolidated metadata, one file that is replaced in one step. So a
frame's chunk is written first, then its time, and the metadata last. A writer that is killed in
between leaves chunks that no reader sees and that the next writer overwrites.

Frames are stored in the order of their arrival, also late ones: a chunk that readers know never
changes its meaning, so that no reader with an open store gets a frame under another frame's time.
:func:`nowcast.rain.store.open_rain` sorts them by time.
"""

from __future__ import annotations

import os
import time as clock
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from daskdl import files
from daskdl.errors import DataError
from daskdl.files import check_local, previous, remove
from nowcast.rain.cf import (
    CLEAN_FLAGS,
    FLAGS,
    QUALITY,
    RADAR_COUNT,
    SCAN_TIME,
    TIME_ENCODING,
    history_line,
    rain_dataset,
)
from nowcast.rain.grid import Grid
from nowcast.rain.store import consolidate, open_stored, write_zarr

if TYPE_CHECKING:
    import xarray as xr

#: Largest number of lines in the attribute history: the newest lines and the first one.
HISTORY = 50
# Each commit rewrites the small file of the newest times; 8 kB hold a day of 90 s scans.
TIMES_A_CHUNK = 1024
#: Fields of a frame; only mosaics have a quality, and only stores that keep flags have these.
FIELDS = ("rain_rate", "quality", FLAGS)
#: Variables with one number per time; a store may lack some.
PER_TIME = ("time", "scan_time", "radar_count")
COMMIT_FRAMES = 16
COMMIT_SECONDS = 5.0


class Frame(NamedTuple):
    """A frame to write."""

    time: np.datetime64  #: Valid time, UTC.
    rain: NDArray[np.float32]  #: mm h-1, (y, x).
    scanned: np.datetime64  #: Start of the scan; the valid time may be this time rounded.
    #: Mosaics only, (y, x): quality 0 to 1 of the radar that sees a cell best; 0 without a radar.
    quality: NDArray[np.float32] | None = None
    #: Bits of the cleaning steps that removed echo from a cell, (y, x).
    flags: NDArray[np.uint8] | None = None
    radars: int = 0  #: Mosaics only: number of radars in the frame.


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Lock the store at ``path`` for writing, so that two runs do not write it at once.

    Raises DataError if another process is writing it, or if the folder cannot be written;
    SettingsError if the path is an address.
    """
    check_local(path)
    with ExitStack() as stack:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            stack.enter_context(files.locked(path.with_name(f".{path.name}.lock")))
        except files.HeldError as holder:
            raise DataError(
                f"{path}: expected to be its only writer, found that another nowcast ingest is "
                f"writing it ({holder}); wait for it"
            ) from None
        except OSError as error:
            raise DataError(
                f"{path}: expected a folder to write the store to, found that it cannot be "
                f"written ({error}); give another --out"
            ) from error
        _tidy(path)
        yield


def _tidy(path: Path) -> None:
    """Finish or undo the unfinished files that a killed run left next to the store."""
    old = previous(path)
    if old.is_dir() and not path.exists():
        os.rename(old, path)
    remove(old)
    for leftover in path.parent.glob(f".{path.name}.*.partial"):
        remove(leftover)


def create(
    path: Path,
    grid: Grid,
    first: Frame,
    *,
    attributes: dict[str, Any],
    global_attributes: dict[str, Any],
    flags: Sequence[str] = (),
) -> None:
    """Create a rain store with one frame under another name, then rename it.

    If the frame has flags, so has the store; ``flags`` are the meanings of their bits.
    Its attribute ``id`` is unique: readers recognise the store by it.
    """
    dataset = rain_dataset(
        grid,
        np.array([first.time], "datetime64[ns]"),
        first.rain[np.newaxis],
        attributes=attributes,
        global_attributes=global_attributes | {"id": uuid.uuid4().hex},
    )
    scanned = np.array([first.scanned], "datetime64[ns]")
    dataset["scan_time"] = ("time", scanned, SCAN_TIME)
    if first.quality is not None:
        dataset["quality"] = (("time", "y", "x"), first.quality[np.newaxis], QUALITY)
        dataset["radar_count"] = ("time", np.array([first.radars], np.int64), RADAR_COUNT)
    if first.flags is not None:
        masks = np.left_shift(1, np.arange(len(flags))).astype(np.uint8)
        meanings = {"flag_masks": masks, "flag_meanings": " ".join(flags)}
        dataset[FLAGS] = (("time", "y", "x"), first.flags[np.newaxis], CLEAN_FLAGS | meanings)
    write_zarr(dataset, path, encoding=encoding_per_time(dataset))


def encoding_per_time(dataset: xr.Dataset) -> dict[str, dict[str, Any]]:
    """Return the encoding of a store's variables of `PER_TIME`: many times in a chunk."""
    chunks = {"chunks": (TIMES_A_CHUNK,)}
    coded = {name: {} if name == "radar_count" else TIME_ENCODING for name in PER_TIME}
    return {name: coded[name] | chunks for name in PER_TIME if name in dataset.variables}


def append(path: Path, frames: Iterable[Frame]) -> int:
    """Add frames with new times to the store; return their number.

    Frames are read one at a time and committed every few, also those before an exception of
    ``frames``. A mosaic's frame of more radars replaces the frame of its time; otherwise raises
    DataError if two frames have one time, or if the store is of another kind.
    """
    store = _Arrays(path)
    times, fresh = list(store.times), list[Frame]()
    known = {second: k for k, second in enumerate(store.times.astype("datetime64[s]").tolist())}
    committed, anew = len(times), 0
    deadline = clock.monotonic() + COMMIT_SECONDS
    try:
        for frame in frames:
            second = frame.time.astype("datetime64[s]").tolist()
            if second in known:
                if known[second] >= committed or not store.take_place(known[second], frame):
                    raise DataError(f"{path}: expected a frame of each time, found two of {second}")
                anew += 1
                continue
            known[second] = len(times)
            store.reserve(committed + COMMIT_FRAMES)
            store.put(len(times), frame)
            fresh.append(frame)
            times.append(frame.time)  # counts as added from here on
            if len(times) - committed == COMMIT_FRAMES or clock.monotonic() > deadline:
                store.commit(times, fresh, known=committed)
                fresh.clear()
                committed = len(times)
                deadline = clock.monotonic() + COMMIT_SECONDS
    finally:
        added = len(times) - len(store.times)
        if added or anew:
            action = f"added {added} scans" + (f", made {anew} frames anew" if anew else "")
            store.commit(times, fresh, known=committed, history=action)
    return added


class _Arrays:
    """The growing arrays of a store: fields with a chunk for each time, numbers of each time."""

    def __init__(self, path: Path) -> None:
        import zarr

        with open_stored(path) as dataset:
            self.times = dataset["time"].values.astype("datetime64[ns]")
        group = zarr.open_group(path, mode="r+", use_consolidated=True)
        self.path, self.history = path, str(group.attrs.get("history", ""))
        self.fields: dict[str, Any] = {name: group[name] for name in FIELDS if name in group}
        self.numbers: dict[str, Any] = {name: group[name] for name in PER_TIME if name in group}
        rain, units = self.fields["rain_rate"], self.numbers["time"].attrs.get("units", "")
        whole = rain.chunks == (1, *rain.shape[1:])
        if not (whole and units.startswith("seconds since 1970-01-01")):
            raise DataError(
                f"{path}: expected a store made by nowcast ingest, with one chunk a time and "
                f"seconds since 1970-01-01, found chunks {rain.chunks} and {units!r}; "
                "ingest into a new store"
            )

    def reserve(self, count: int) -> None:
        """Resize fields for ``count`` frames; readers do not see it before a commit."""
        for field in self.fields.values():
            if count != field.shape[0]:
                field.resize((count, *field.shape[1:]))

    def put(self, index: int, frame: Frame) -> None:
        """Write the fields of a frame; readers do not see a new one before a commit."""
        for name, values in zip(FIELDS, (frame.rain, frame.quality, frame.flags), strict=True):
            if name in self.fields and values is not None:
                self.fields[name][index] = values

    def take_place(self, index: int, frame: Frame) -> bool:
        """Replace a frame by one of more radars; return whether it is one.

        Both have the same time: a reader sees the one or the other.
        """
        radars, scanned = self.numbers.get("radar_count"), self.numbers.get("scan_time")
        if radars is None or frame.radars <= radars[index]:
            return False
        self.put(index, frame)
        self._sync(index, index + 1)
        radars[index] = frame.radars
        if scanned is not None:
            scanned[index] = frame.scanned.astype("datetime64[s]").astype(np.int64)
        return True

    def commit(
        self, times: list[np.datetime64], fresh: list[Frame], *, known: int, history: str = ""
    ) -> None:
        """Make the frames of ``times`` visible to readers, who see the first ``known`` now.

        ``fresh`` are the new ones.
        """
        added = fresh[: len(times) - known]
        seconds = (
            np.array(column, "datetime64[s]").astype(np.int64)
            for column in (times[known:], [frame.scanned for frame in added])
        )
        columns = (*seconds, [frame.radars for frame in added])
        for name, values in zip(PER_TIME, columns, strict=True):
            if name in self.numbers:
                self.numbers[name].resize((len(times),))
                self.numbers[name][known:] = values
        self.reserve(len(times))
        self._sync(known, len(times))
        lines = self.history.splitlines()
        if history:
            lines = [history_line(history), *lines]
        if len(lines) > HISTORY:  # a watch would add a line per scan for years
            lines = [*lines[: HISTORY - 1], lines[-1]]
        consolidate(self.path, {"history": "\n".join(lines)})

    def _sync(self, known: int, count: int) -> None:
        """Flush the data of the next metadata to disk; zarr leaves that to the system."""
        fields = [self.path / name for name in self.fields]
        chunks = (field / "c" / str(index) for field in fields for index in range(known, count))
        # A frame without any valid cell has no chunk.
        numbers = [self.path / name for name in self.numbers]
        files.sync_trees([*(chunk for chunk in chunks if chunk.is_dir()), *numbers])
        for path in (path for field in fields for path in (field / "c", field / "zarr.json")):
            if path.exists():
                files.sync(path)
