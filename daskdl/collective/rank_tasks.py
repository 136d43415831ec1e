"""Rank tasks: one task on a worker for each rank of a group, watched by the driver."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent import futures as concurrent
from typing import TYPE_CHECKING, Any

from daskdl.cluster.attempts import lost
from daskdl.cluster.client import HEARD_EVERY, Cluster
from daskdl.cluster.settings import seconds
from daskdl.collective.group import Group
from daskdl.collective.transport.comm import BrokenGangError
from daskdl.errors import ClusterError

if TYPE_CHECKING:
    from distributed import Future

#: Ranks of a group of whom the scheduler is asked in a second whether they are there.
ASKED_IN_A_SECOND = 32

#: Name of the lock of those that need all workers at once.
TURN = "daskdl-gang"

#: Of a future that has not failed.
UNDER_WAY = ("pending", "finished")


def take_turn(cluster: Cluster, lock: Any, purpose: str) -> None:
    """Take the cluster's lock :data:`TURN`; ranks of two groups would wait for each other.

    Raises ClusterError when it is not free within ``daskdl.stall-timeout``.
    """
    limit = time.monotonic() + seconds("stall-timeout")
    while not lock.acquire(timeout=5):
        cluster.workers(purpose)
        if time.monotonic() > limit:
            raise ClusterError(
                f"{purpose}: expected a turn within daskdl.stall-timeout, found another fit or "
                "collective at work on the same cluster; wait for its end, or use another cluster"
            )


class RankTasks:
    """The tasks of all ranks; if one is lost, all end.

    Parameters
    ----------
    cluster : Cluster
    run : str
    attempt : int
    group : Group
    futures : sequence of Future
        Of the ranks' tasks, by rank.
    """

    def __init__(
        self, cluster: Cluster, run: str, attempt: int, group: Group, futures: Sequence[Future]
    ) -> None:
        self._cluster, self._group, self._futures = cluster, group, list(futures)
        self._where: dict[str, Any] = {"run": run, "attempt": attempt}
        self._silent: dict[str, float] = {}  # as Cluster.silent has it

    @property
    def over(self) -> bool:
        """Whether some ranks have ended."""
        return any(future.status != "pending" for future in self._futures)

    @property
    def failed(self) -> bool:
        """Whether some rank has failed or is lost."""
        return any(future.status not in UNDER_WAY for future in self._futures)

    def wait(self, purpose: str, limit: float) -> None:
        """Wait until all ranks have ended.

        Raises
        ------
        BrokenGangError
            When a rank is lost.
        ClusterError
            When it takes longer than ``limit`` seconds.
        Exception
            The error of a task.
        """
        self._wait(None, purpose, limit)
        self._raise(purpose)

    def results(self) -> list[Any]:
        """Return the results of all ranks, after :meth:`wait`."""
        return self._cluster.fetch(self._futures)

    def end(self, why: str) -> dict[str, str]:
        """End the attempt on all workers; return what each was doing."""
        return self._cluster.tell({"op": "daskdl_gang_end", "why": why, **self._where})

    def close(self) -> dict[str, Future]:
        """Release the tasks; return those that have not ended, by worker."""
        late = {}
        for future, address in zip(self._futures, self._group.addresses, strict=True):
            if future.status == "pending":
                late[address] = future
            else:
                future.release()
        return late

    def _wait(self, asked: concurrent.Future[Any] | None, purpose: str, stall: float) -> Any:
        """Wait for rank 0's answer or the tasks' end, or for a while when one is lost or failed."""
        began = looked = heard = time.monotonic()
        ended = 0.0
        # Ranks notice by themselves when a peer is lost; to ask costs as much as there are.
        pause, lost = len(self._group.addresses) / ASKED_IN_A_SECOND, list[int]()
        while True:
            if asked is None:
                if self._all_done(1.0):
                    return None
            elif concurrent.wait([asked], timeout=1.0).done:
                answer = None if asked.exception() else asked.result()
                if answer is not None:
                    return answer["result"]
                if asked.exception() and not ended:
                    self.end(f"{self._group.name(0)} is lost ({asked.exception()})")
                    ended = time.monotonic()
                asked = None  # the tasks tell why
                continue
            now = time.monotonic()
            if now - looked > pause:
                alive, looked = self._cluster.alive(purpose), now
                lost = [r for r, a in enumerate(self._group.addresses) if a not in alive]
            if now - heard > max(HEARD_EVERY, 2 * pause):
                self._silent, heard = self._cluster.silent(purpose), now
            late = [r for r, future in enumerate(self._futures) if future.status == "pending"]
            silent = [r for r in late if self._group.addresses[r] in self._silent]
            if not ended and (lost or silent or self.failed):
                name = "another rank has failed"
                if lost or silent:
                    name = (
                        f"{self._group.name(lost[0])} is lost" if lost else self._quiet(silent[0])
                    )
                self.end(name)
                ended = now
            # A rank's work may take long, but nobody waits for those that are silent.
            if ended and (len(late) == len(silent) or now - ended > self._group.patience):
                if asked is not None:
                    asked.cancel()
                return None
            if late and now - began > stall:
                at = self.end("it lasted too long")
                # Others wait for the one that is at a shard.
                addresses = self._group.addresses
                rank = next((r for r in late if "shard" in at.get(addresses[r], "")), late[0])
                raise ClusterError(
                    f"{purpose}: expected an end within {self._limit(stall)}, found "
                    f"{self._group.name(rank)} still at {at.get(addresses[rank]) or 'work'}; "
                    "see that worker's log, or allow more time"
                )

    def _limit(self, stall: float) -> str:
        named = "daskdl.stall-timeout = " if stall == seconds("stall-timeout") else ""
        return f"{named}{stall:g} s"

    def _all_done(self, timeout: float) -> bool:
        return self._cluster.ended(self._futures, timeout)

    def _raise(self, purpose: str) -> None:
        """Raise the most informative error of the ranks that failed."""
        errors = [
            self._error(future, rank, purpose)
            for rank, future in enumerate(self._futures)
            if future.status != "finished"
        ]
        if errors:
            raise min(errors, key=_says_little)

    def _quiet(self, rank: int) -> str:
        since = self._silent[self._group.addresses[rank]]
        return f"{self._group.name(rank)} has sent no heartbeat for {since:.0f} s"

    def _error(self, future: Future, rank: int, purpose: str) -> BaseException:
        """Return why a rank failed."""
        name = self._group.name(rank)
        if future.status == "pending" and self._group.addresses[rank] in self._silent:
            return BrokenGangError(f"{purpose}: {self._quiet(rank)}")
        if future.status == "pending":
            return BrokenGangError(f"{purpose}: {name} does not come to an end")
        error = self._cluster.error(future)
        if not isinstance(error, lost()) or isinstance(error, BrokenGangError):
            return error
        broken = BrokenGangError(f"{purpose}: {name} is lost ({type(error).__name__})")
        broken.__cause__ = error
        return broken


def _says_little(error: BaseException) -> int:
    """Return 0 for an error of the task's own, more for one that follows from another's."""
    if not isinstance(error, BrokenGangError):
        return 0
    text = str(error)
    return 1 + ("does not come" in text) + 2 * ("has failed" in text or "ended the" in text)
