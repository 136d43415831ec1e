"""Directory sink: answers as files of JSON lines in a folder."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from daskdl.errors import DataError
from daskdl.stream.protocols import Reader
from daskdl.stream.records import Output, Partition, as_json


class DirectorySink:
    """Files of JSON lines in ``<folder>/<topic>/``, one for each partition and commit.

    A file is named by the place of its first record and is there as a whole or not at all; what is
    read again after a loss begins at the same place and takes the place of that file.

    Parameters
    ----------
    folder : path
        That all workers see.

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

    def fence(self, slot: int) -> None:
        """Do nothing."""

    def writer(self, slot: int) -> DirectoryWriter:
        """Return a writer."""
        return DirectoryWriter(self.folder)


class DirectoryWriter:
    """Writes files of JSON lines.

    Parameters
    ----------
    folder : path
    """

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
            beside = self._folder / topic / f".{name}.{os.getpid()}"
            beside.write_text("".join(f"{as_json(output)}\n" for output in outputs))
            os.replace(beside, self._folder / topic / name)
        reader.commit(positions)

    def give_up(self) -> None:
        """Do nothing: it waits for nobody."""

    def close(self) -> None:
        """Drop what was not committed."""
        self._waiting = []
