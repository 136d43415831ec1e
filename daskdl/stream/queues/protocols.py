"""Source and Sink: protocols of queues that a stream reads and writes.

Another queue is a file with a class of each, which inherits the methods that it does not define.
The driver makes them, and workers get them pickled; so connections are opened by ``reader`` and
``writer``, not before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from daskdl.stream.queues.records import Output, Partition, Record


class Reader(Protocol):
    """Protocol of a reader of partitions on a worker."""

    def assign(self, partitions: Sequence[Partition]) -> None:
        """Read only these; new ones from their committed offset on."""

    def rewind(self) -> None:
        """Read all partitions again from their committed offsets on."""
        partitions = [*self.positions()]
        self.assign([])
        self.assign(partitions)

    def poll(self, limit: int, wait: float) -> list[Record]:
        """Return up to ``limit`` records as soon as there are any, none after ``wait`` seconds."""

    def positions(self) -> dict[Partition, int]:
        """Return the next offset of each partition, past all that has been returned."""

    def commit(self, positions: Mapping[Partition, int]) -> None:
        """Commit offsets: all before them is done."""

    def at_end(self) -> set[Partition]:
        """Return the partitions that were read to their ends."""

    def close(self) -> None:
        """Close connections."""
        return


class Places(Reader):
    """A reader's next offset of each partition, and those read to their ends."""

    def __init__(self) -> None:
        self._next: dict[Partition, int] = {}
        self._at_end: set[Partition] = set()

    def positions(self) -> dict[Partition, int]:
        """Return the next offset of each partition, past all that has been returned."""
        return dict(self._next)

    def at_end(self) -> set[Partition]:
        """Return the partitions that were read to their ends."""
        return set(self._at_end)


class Source(Protocol):
    """Protocol of a source of records."""

    #: Name under which offsets are committed.
    group: str

    def partitions(self) -> list[Partition]:
        """Return all current partitions."""

    def claim(self, run: str) -> None:
        """Take the group over for a run: commit first offsets where there are none."""

    def claimed_by(self) -> str | None:
        """Return the run that has the group; None if it is not known."""
        return None

    def ends(self, partitions: Sequence[Partition]) -> dict[Partition, int]:
        """Return the offset after the last record of each partition, if known, for the lag."""
        return {}

    def reader(self, run: str) -> Reader:
        """Return a reader without partitions."""

    def close(self) -> None:
        """Close the driver's connections."""


class Writer(Protocol):
    """Protocol of a writer on a worker."""

    def write(self, outputs: Sequence[Output]) -> None:
        """Write outputs of a batch, in their order."""

    def commit(self, reader: Reader, positions: Mapping[Partition, int]) -> None:
        """Return when all outputs are safe and the offsets are committed.

        Raises
        ------
        RolledBackError
            When all of it was rolled back; the batches must be read again.
        FencedError
            When another writer has taken this slot.
        """

    def give_up(self) -> None:
        """End the waits of another thread for the queue, with an error."""
        return

    def close(self) -> None:
        """Close connections; uncommitted outputs may be lost."""
        return


class Sink(Protocol):
    """Protocol of a sink of answers."""

    #: Whether outputs and offsets are committed in one transaction.
    exactly_once: bool

    def check(self, partitions: Sequence[Partition], topics: Sequence[str]) -> None:
        """Raise a SettingsError when outputs of these topics cannot be written."""

    def fence(self, slot: int) -> None:
        """End the open work of a former writer of this slot, which can then commit no more.

        It does nothing without ``exactly_once``.
        """

    def writer(self, slot: int) -> Writer:
        """Return the writer of a slot; a slot has one writer at a time."""


class RolledBackError(Exception):
    """A transaction failed: everything since the last commit must be read again."""


class FencedError(Exception):
    """Another writer has taken this slot; nothing more can be committed."""
