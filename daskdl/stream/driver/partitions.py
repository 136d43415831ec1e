"""Partitions: their list, their ends, and the session that reads each."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress

from daskdl.stream.queues.protocols import Source
from daskdl.stream.queues.records import Partition

logger = logging.getLogger(__name__)

#: Seconds between two looks.
LOOK = 1.0
#: Seconds that the end of a stream waits for the last look.
CLOSING = 2.0


class PartitionWatch:
    """Looks for new partitions and ends at intervals, in another thread."""

    def __init__(self, source: Source, partitions: list[Partition]) -> None:
        self._source, self.partitions = source, partitions
        self.ends: dict[Partition, int] = {}
        #: The run that has the group, None if nobody knows.
        self.owner: str | None = None
        self._pool, self._next = ThreadPoolExecutor(1, "daskdl-look"), 0.0
        self._answer: Future[tuple[list[Partition], dict[Partition, int], str | None]] | None = None

    def at(self, now: float) -> tuple[list[Partition], dict[Partition, int]]:
        """Return the partitions and their ends at the last look."""
        if self._answer is not None and self._answer.done():
            try:
                self.partitions, self.ends, self.owner = self._answer.result()
            except Exception as error:  # of a broker that is away for a while
                logger.warning("looking for partitions: %s", error)
            self._answer, self._next = None, now + LOOK
        if self._answer is None and now > self._next:
            self._answer = self._pool.submit(self._look)
        return self.partitions, self.ends

    def _look(self) -> tuple[list[Partition], dict[Partition, int], str | None]:
        partitions = self._source.partitions()
        return partitions, self._source.ends(partitions), self._source.claimed_by()

    def close(self) -> None:
        """Close the source after the last look, which may wait long for a lost broker."""
        closed = self._pool.submit(self._source.close)
        self._pool.shutdown(wait=False)
        with suppress(TimeoutError):
            closed.result(CLOSING)


def fair(
    partitions: Sequence[Partition], owners: Mapping[Partition, int], sessions: Collection[int]
) -> dict[Partition, int]:
    """Divide partitions evenly, to within one, and move few of them.

    ``owners`` has the current session of a partition; ``sessions`` is not empty.
    """
    least, more = divmod(len(partitions), len(sessions))
    had = {s: [p for p in partitions if owners.get(p) == s] for s in sessions}
    # Those that have most keep one more.
    order = sorted(sessions, key=lambda s: (-len(had[s]), s))
    room = {s: least + (i < more) for i, s in enumerate(order)}
    staying = {p: s for s in order for p in had[s][: room[s]]}
    free = [s for s in order for _ in range(room[s] - min(room[s], len(had[s])))]
    return staying | dict(zip((p for p in partitions if p not in staying), free, strict=True))


class Ownership:
    """The sessions that may read each partition.

    A partition moves in two steps: its session is ordered to release it. When the session has
    confirmed that, or can commit no more, another session gets the partition.
    """

    def __init__(self) -> None:
        self.owners: dict[Partition, int] = {}

    def shares(
        self, partitions: Sequence[Partition], sessions: Collection[int]
    ) -> dict[int, tuple[Partition, ...]]:
        """Return the partitions for each session to read now, and note their owners."""
        wanted = fair(partitions, self.owners, sessions) if sessions else {}
        for partition, session in wanted.items():
            self.owners.setdefault(partition, session)
        return {
            s: tuple(p for p, of in wanted.items() if of == s and self.owners[p] == s)
            for s in sessions
        }

    def follows(self, session: int, partitions: Collection[Partition]) -> None:
        """Note that a session reads only these partitions; none if it can commit no more."""
        for partition in [p for p, s in self.owners.items() if s == session]:
            if partition not in partitions:
                del self.owners[partition]
