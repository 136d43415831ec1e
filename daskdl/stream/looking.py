"""Looking: which partitions there are, where they end, and who has the group."""

from __future__ import annotations

import logging
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress

from daskdl.stream.protocols import Source
from daskdl.stream.records import Partition

logger = logging.getLogger(__name__)

#: Seconds between two looks.
LOOK = 1.0
#: Seconds that the end of a stream waits for the last look.
CLOSING = 2.0


class Looking:
    """Looks for new partitions and their ends now and then, in a thread of its own.

    Parameters
    ----------
    source : Source
    partitions : list of Partition
        Those that are known.
    """

    def __init__(self, source: Source, partitions: list[Partition]) -> None:
        self._source, self.partitions = source, partitions
        self.ends: dict[Partition, int] = {}
        #: The run that has the group, None if nobody knows.
        self.owner: str | None = None
        self._pool, self._next = ThreadPoolExecutor(1, "daskdl-look"), 0.0
        self._found: Future[tuple[list[Partition], dict[Partition, int], str | None]] | None = None

    def at(self, now: float) -> tuple[list[Partition], dict[Partition, int]]:
        """Return the partitions and their ends, by the last look."""
        if self._found is not None and self._found.done():
            try:
                self.partitions, self.ends, self.owner = self._found.result()
            except Exception as error:  # of a broker that is away for a while
                logger.warning("looking for partitions: %s", error)
            self._found, self._next = None, now + LOOK
        if self._found is None and now > self._next:
            self._found = self._pool.submit(self._look)
        return self.partitions, self.ends

    def _look(self) -> tuple[list[Partition], dict[Partition, int], str | None]:
        partitions = self._source.partitions()
        return partitions, self._source.ends(partitions), self._source.claimed_by()

    def close(self) -> None:
        """Close the source after the last look, which may wait long for a broker that is away."""
        closed = self._pool.submit(self._source.close)
        self._pool.shutdown(wait=False)
        with suppress(TimeoutError):
            closed.result(CLOSING)
