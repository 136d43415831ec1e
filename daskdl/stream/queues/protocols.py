"""Source and Sink: protocols of what a stream reads from and writes to.

Another queue is a file with a class of each, which inherits what it does not do itself. The driver
makes them and workers get them pickled, so that connections are opened by ``reader`` and
``writer``, not before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from daskdl.stream.queues.records import Output, Partition, Record


class Reader(Protocol):
    """Protocol of what reads partitions on a worker."""

    def assign(self, partitions: Sequence[Partition]) -> None:
        """Read these and no others; what was not read before, from its committed offset on."""

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
    """Protocol of where records come from."""

    #: Name under which offsets are committed.
    group: str

    def partitions(self) -> list[Partition]:
        """Return all partitions that there are now."""

    def claim(self, run: str) -> None:
        """Take the group over for a run: commit first offsets where there are none."""

    def claimed_by(self) -> str | None:
        """Return the run that has the group, None if nobody knows."""
        return None

    def ends(self, partitions: Sequence[Partition]) -> dict[Partition, int]:
        """Return the offset behind the last record of each partition, where known, for the lag."""
        return {}

    def reader(self, run: str) -> Reader:
        """Return a reader without partitions."""

    def close(self) -> None:
        """Close what the driver has open."""


class Writer(Protocol):
    """Protocol of what writes on a worker."""

    def write(self, outputs: Sequence[Output]) -> None:
        """Write outputs of a batch, in their order."""

    def commit(self, reader: Reader, positions: Mapping[Partition, int]) -> None:
        """Return when all that was written is safe, and the offsets are committed.

        Raises
        ------
        RolledBackError
            When nothing of it counts, and the batches are to be read again.
        FencedError
            When another has taken this slot.
        """

    def give_up(self) -> None:
        """Have calls of another thread that wait for the queue end soon, with an error."""
        return

    def close(self) -> None:
        """Close connections; what was not committed may be lost."""
        return


class Sink(Protocol):
    """Protocol of where answers go."""

    #: Whether outputs and offsets are committed in one transaction.
    exactly_once: bool

    def check(self, partitions: Sequence[Partition], topics: Sequence[str]) -> None:
        """Raise a SettingsError when outputs of these topics cannot be written."""

    def fence(self, slot: int) -> None:
        """End whatever a former writer of this slot has not committed, and let it commit no more.

        Does nothing without ``exactly_once``.
        """

    def writer(self, slot: int) -> Writer:
        """Return the writer of a slot; of each slot there is one at a time."""


class RolledBackError(Exception):
    """A transaction failed: all that was written since the last commit has to be read again."""


class FencedError(Exception):
    """Another has taken this writer's slot; nothing can be committed any more."""
