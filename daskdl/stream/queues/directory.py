"""Directory source and sink: records and answers as files that arrive in a folder."""

from __future__ import annotations

import json
import os
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

from daskdl.errors import DataError, SettingsError, needed
from daskdl.stream.queues.protocols import Places, Reader, Sink, Source, Writer
from daskdl.stream.queues.records import Output, Partition, Record, as_json

#: Rows of a Parquet file that are in memory at once.
ROWS = 1024


class DirectorySource(Source):
    """Files of a folder that all workers see.

    A file must be whole when it has its name: write it under a name that begins with ``.`` and
    rename it. A file is a partition; its lines or rows are records. ``.<group>/<file>.json`` says
    how many are done.

    Parameters
    ----------
    folder : path
    pattern : str
        ``*.jsonl``, ``*.parquet``, or another pattern with one of these suffixes.
    group : str

    Examples
    --------
    >>> from pathlib import Path
    >>> _ = Path("calls.jsonl").write_text('{"text": "hello"}')
    >>> source = DirectorySource(".")
    >>> source.partitions()
    [Partition(topic='calls.jsonl', number=0)]
    >>> reader = source.reader("run")
    >>> reader.assign(source.partitions())
    >>> reader.poll(10, wait=0)[0].value
    b'{"text": "hello"}'
    """

    def __init__(self, folder: str | Path, pattern: str = "*.jsonl", group: str = "daskdl") -> None:
        self.folder, self.pattern, self.group = Path(folder).resolve(), pattern, group
        if Path(pattern).suffix not in (".jsonl", ".parquet"):
            raise SettingsError(
                f"pattern: expected one of .jsonl or .parquet, found {pattern!r}; give *.jsonl"
            )
        if not self.folder.is_dir():
            raise DataError(f"{self.folder}: expected a folder, found none; make it first")

    def partitions(self) -> list[Partition]:
        """Return the files that are not done."""
        names = sorted(p.name for p in self.folder.glob(self.pattern) if p.name[0] != ".")
        return [
            Partition(name, 0)
            for name in names
            if not _committed(self.folder, self.group, name).get("done")
        ]

    def claim(self, run: str) -> None:
        """Note the run."""
        place = self.folder / f".{self.group}"
        place.mkdir(exist_ok=True)
        _replace(place / "run", run)

    def claimed_by(self) -> str | None:
        """Return the run that has the group."""
        try:
            return (self.folder / f".{self.group}" / "run").read_text()
        except OSError:
            return None

    def reader(self, run: str) -> DirectoryReader:
        """Return a reader without files."""
        return DirectoryReader(self.folder, self.group)


class DirectoryReader(Places):
    """Reads assigned files."""

    def __init__(self, folder: Path, group: str) -> None:
        super().__init__()
        self._folder, self._group = folder, group
        self._open: dict[Partition, Iterator[Record]] = {}

    def assign(self, partitions: Sequence[Partition]) -> None:
        """Read these and no others; what was not read before, from its committed line on."""
        for partition in [p for p in self._next if p not in partitions]:
            del self._next[partition]
            self._open.pop(partition, None)
            self._at_end.discard(partition)
        for partition in partitions:
            if partition not in self._next:
                committed = _committed(self._folder, self._group, partition.topic)
                self._next[partition] = int(committed.get("offset", 0))
                self._open[partition] = self._records(partition, self._next[partition])

    def _records(self, partition: Partition, start: int) -> Iterator[Record]:
        path = self._folder / partition.topic
        came = int(path.stat().st_mtime * 1000)
        lines = _rows(path) if path.suffix == ".parquet" else _lines(path)
        offset = 0
        try:
            for value in lines:
                if offset >= start:
                    yield Record(partition, offset, came, None, value)
                offset += 1
        except (ValueError, OSError) as error:
            if getattr(error, "errno", None) is not None:  # of the disk, which may answer again
                raise
            why = f"{path}: expected a whole Parquet file, found {error}; write it under a new name"
            yield Record(partition, max(offset, start), came, None, None, why)

    def poll(self, limit: int, wait: float) -> list[Record]:
        """Return up to ``limit`` records of the first file that has some."""
        for partition, records in list(self._open.items()):
            records_read = list(islice(records, limit))
            if records_read:
                self._next[partition] = records_read[-1].offset + 1
                return records_read
            del self._open[partition]
            self._at_end.add(partition)
            committed = _committed(self._folder, self._group, partition.topic)
            if committed.get("offset", 0) == self._next[partition]:
                self.commit({partition: self._next[partition]})
        time.sleep(wait)
        return []

    def commit(self, positions: Mapping[Partition, int]) -> None:
        """Note that all lines before these positions are done."""
        for partition, offset in positions.items():
            place = self._folder / f".{self._group}"
            place.mkdir(exist_ok=True)
            position = {"offset": offset, "done": False}
            _replace(place / f"{partition.topic}.json", json.dumps(position))
            # Asked after that, since the thread that reads may have come to the end just now.
            if partition in self._at_end and offset == self._next.get(partition):
                _replace(place / f"{partition.topic}.json", json.dumps({**position, "done": True}))

    def close(self) -> None:
        """Close open files."""
        self._open.clear()


def _lines(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        for line in file:
            yield line.rstrip(b"\r\n")


def _rows(path: Path) -> Iterator[bytes]:
    with needed(
        f"{path}: expected what reads Parquet, found {{error}}; pip install 'daskdl[parquet]'"
    ):
        from pyarrow.parquet import ParquetFile
    for batch in ParquetFile(path).iter_batches(ROWS):
        for row in batch.to_pylist():
            yield json.dumps(row, default=str).encode()


def _committed(folder: Path, group: str, name: str) -> dict[str, int]:
    try:
        position: dict[str, int] = json.loads((folder / f".{group}" / f"{name}.json").read_text())
        return position
    except (OSError, ValueError):
        return {}


def _replace(path: Path, content: str) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    temporary.write_text(content)
    os.replace(temporary, path)


class DirectorySink(Sink):
    """Files of JSON lines in ``<folder>/<topic>/``, one for each partition and commit.

    A file is named after the place of its first record, and is whole or not there. Records that are
    read again after a loss begin at the same place, so that their file replaces it.

    Parameters
    ----------
    folder : path
        A folder that all workers see.

    Examples
    --------
    >>> sink = DirectorySink("out")
    >>> sink.check([], ["answers", "bad"])
    >>> sorted(path.name for path in sink.folder.iterdir())
    ['answers', 'bad']
    """

    exactly_once = False

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder).resolve()

    def check(self, partitions: Sequence[Partition], topics: Sequence[str]) -> None:
        """Make the folders."""
        for topic in topics:
            try:
                (self.folder / topic).mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise DataError(
                    f"{self.folder / topic}: expected a place for answers, found {error.strerror}; "
                    "give another folder"
                ) from error

    def writer(self, slot: int) -> DirectoryWriter:
        """Return a writer."""
        return DirectoryWriter(self.folder)


class DirectoryWriter(Writer):
    """Writes files of JSON lines."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._waiting = folder, list[Output]()

    def write(self, outputs: Sequence[Output]) -> None:
        """Keep outputs until they are committed."""
        self._waiting += outputs

    def commit(self, reader: Reader, positions: Mapping[Partition, int]) -> None:
        """Write a file for each topic and partition, and commit the offsets."""
        by_file: dict[tuple[str, Partition], list[Output]] = defaultdict(list)
        for output in self._waiting:
            by_file[output.topic, output.record.partition].append(output)
        self._waiting = []
        for (topic, partition), outputs in by_file.items():
            first = outputs[0].record.offset
            name = f"{partition.topic}-{partition.number}-{first:012d}.jsonl"
            temporary = self._folder / topic / f".{name}.{os.getpid()}"
            temporary.write_text("".join(f"{as_json(output)}\n" for output in outputs))
            os.replace(temporary, self._folder / topic / name)
        reader.commit(positions)

    def close(self) -> None:
        """Drop what was not committed."""
        self._waiting = []
