"""Session: the tasks of one gang, which run the groups that the driver asks for."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent import futures as concurrent
from typing import TYPE_CHECKING, Any

from daskdl.cluster.client import Cluster
from daskdl.cluster.settings import seconds
from daskdl.collective.rank_tasks import RankTasks
from daskdl.data.batches import Share
from daskdl.train.gang.members import Gang
from daskdl.train.gang.outcome import Result, note_of

if TYPE_CHECKING:
    from distributed import Future

#: Seconds that members have to leave when asked to.
LEAVING = 10.0


class Session(RankTasks):
    """The working members of a gang: the futures of their tasks, by rank."""

    def __init__(
        self, cluster: Cluster, run: str, attempt: int, gang: Gang, futures: Sequence[Future]
    ) -> None:
        super().__init__(cluster, run, attempt, gang, futures)
        self._gang = gang
        self._sent = True  # the first group came with the tasks
        self.began = time.monotonic()

    @property
    def stays(self) -> bool:
        """Whether there can be more groups after the first."""
        return self._gang.stays

    def group(self, first: int, shares: Sequence[Share], purpose: str) -> Result | None:
        """Return the outcome of the group that begins with iteration ``first``.

        None if the members have left before the request came, as they do when the driver is busy
        for a while. Raises BrokenGangError when a member is lost, TaskError for an exception in a
        task, and ClusterError when it takes too long.
        """
        asked = None
        if self._gang.stays:
            request = None if self._sent else note_of(shares)
            asked = self._ask(first, request)
        self._sent = False
        result: Result | None = self._wait(asked, purpose, seconds("stall-timeout"))
        if result is not None:
            return result
        self._raise(purpose)
        if self._gang.stays:
            return None
        (alone,) = self._cluster.fetch(self._futures[:1])
        assert isinstance(alone, Result)
        return alone

    def leave(self, first: int) -> None:
        """Let the members end."""
        if self._gang.stays and not self.over and self._cluster.connected:
            asked = self._ask(first, [])
            concurrent.wait([asked], timeout=LEAVING)
            asked.cancel()
        limit = time.monotonic() + LEAVING
        while self._cluster.connected and time.monotonic() < limit and not self._all_done(0.2):
            pass

    def _ask(self, first: int, request: Any) -> concurrent.Future[Any]:
        message = {"op": "daskdl_gang_ask", "first": first, "word": request, **self._where}
        return self._cluster.ask(self._gang.addresses[0], message)
