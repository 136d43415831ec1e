"""Session: the tasks of one gang, which the driver asks for group after group."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent import futures as concurrent
from typing import TYPE_CHECKING, Any

from daskdl.cluster.client import LOST, Cluster
from daskdl.cluster.settings import seconds
from daskdl.collective.errors import BrokenGangError
from daskdl.data.batches import Share
from daskdl.errors import ClusterError
from daskdl.train.draws import note_of
from daskdl.train.member import Result
from daskdl.train.members import Gang

if TYPE_CHECKING:
    from distributed import Future

#: Members of a gang of whom the scheduler is asked in a second whether they are there.
ASKED_IN_A_SECOND = 32

#: Of a future that has not failed.
UNDER_WAY = ("pending", "finished")

#: Seconds that members are given to leave when they are told to.
LEAVING = 10.0


class Session:
    """The members of a gang at work.

    Parameters
    ----------
    cluster : Cluster
    run : str
        The job's.
    attempt : int
    gang : Gang
    futures : sequence of Future
        Of the members' tasks, by rank.
    """

    def __init__(
        self, cluster: Cluster, run: str, attempt: int, gang: Gang, futures: Sequence[Future]
    ) -> None:
        self._cluster, self._gang, self._futures = cluster, gang, list(futures)
        self._where: dict[str, Any] = {"run": run, "attempt": attempt}
        self._told = True  # the first group came with the tasks
        self.began = time.monotonic()

    @property
    def stays(self) -> bool:
        """Whether there can be more groups after the first."""
        return self._gang.stays

    @property
    def over(self) -> bool:
        """Whether some members have come to an end."""
        return any(future.status != "pending" for future in self._futures)

    @property
    def failed(self) -> bool:
        """Whether some member has come to no good end."""
        return any(future.status not in UNDER_WAY for future in self._futures)

    def group(self, first: int, shares: Sequence[Share], what: str) -> Result | None:
        """Return what the group that begins with iteration ``first`` comes to.

        None if the members have left before they heard of it, as they do when the driver is busy
        with other things for a while.

        Raises
        ------
        BrokenGangError, TaskError
            When a member is lost, or for an exception in a task.
        ClusterError
            When it takes too long.
        """
        asked = None
        if self._gang.stays:
            word = None if self._told else note_of(shares)
            asked = self._ask(first, word)
        self._told = False
        result = self._wait(asked, what)
        if result is not None:
            return result
        errors = [
            self._error(future, self._gang.name(rank), what)
            for rank, future in enumerate(self._futures)
            if future.status != "finished"
        ]
        if errors:
            raise min(errors, key=_says_little)
        if self._gang.stays:
            return None
        (alone,) = self._cluster.fetch(self._futures[:1])
        assert isinstance(alone, Result)
        return alone

    def leave(self, first: int) -> None:
        """Let the members come to their end."""
        if self._gang.stays and not self.over and self._cluster.connected:
            asked = self._ask(first, [])
            concurrent.wait([asked], timeout=LEAVING)
            asked.cancel()
        limit = time.monotonic() + LEAVING
        while self._cluster.connected and time.monotonic() < limit and not self._all_done(0.2):
            pass

    def close(self) -> dict[str, Future]:
        """Let go of the tasks; return those that have not come to an end, by worker."""
        late = {}
        for future, address in zip(self._futures, self._gang.addresses, strict=True):
            if future.status == "pending":
                late[address] = future
            else:
                future.release()
        return late

    def _ask(self, first: int, word: Any) -> concurrent.Future[Any]:
        message = {"op": "daskdl_gang_ask", "first": first, "word": word, **self._where}
        return self._cluster.ask(self._gang.addresses[0], message)

    def _wait(self, asked: concurrent.Future[Any] | None, what: str) -> Result | None:
        """Wait for the answer or the tasks' end, or for a while when one is lost or has failed."""
        began = looked = time.monotonic()
        ended, stall = 0.0, seconds("stall-timeout")
        # Members notice by themselves when a peer is lost; to ask costs as much as there are.
        pause, lost = len(self._gang.addresses) / ASKED_IN_A_SECOND, list[int]()
        while True:
            if asked is None:
                if self._all_done(1.0):
                    return None
            elif concurrent.wait([asked], timeout=1.0).done:
                answer = None if asked.exception() else asked.result()
                if answer is not None:
                    result: Result = answer["result"]
                    return result
                if asked.exception() and not ended:
                    self._end(f"{self._gang.name(0)} is lost ({asked.exception()})")
                    ended = time.monotonic()
                asked = None  # the tasks tell why
                continue
            now = time.monotonic()
            if now - looked > pause:
                alive, looked = self._cluster.alive(what), now
                lost = [r for r, a in enumerate(self._gang.addresses) if a not in alive]
            if not ended and (lost or any(f.status not in UNDER_WAY for f in self._futures)):
                name = (
                    f"{self._gang.name(lost[0])} is lost" if lost else "another member has failed"
                )
                self._end(name)
                ended = now
            late = [r for r, future in enumerate(self._futures) if future.status == "pending"]
            if ended and now - ended > self._gang.patience:  # a gradient may take long
                if asked is not None:
                    asked.cancel()
                return None
            if late and now - began > stall:
                at = self._end("it lasted too long")
                # Others wait for the one that is at a shard.
                addresses = self._gang.addresses
                rank = next((r for r in late if "shard" in at.get(addresses[r], "")), late[0])
                raise ClusterError(
                    f"{what}: expected an end within daskdl.stall-timeout = {stall:g} s, found "
                    f"{self._gang.name(rank)} still at {at.get(addresses[rank]) or 'work'}"
                )

    def _all_done(self, timeout: float) -> bool:
        return self._cluster.ended(self._futures, timeout)

    def _error(self, future: Future, name: str, what: str) -> BaseException:
        """Return why a member has not come to a good end."""
        if future.status == "pending":
            return BrokenGangError(f"{what}: {name} does not come to an end")
        error = self._cluster.error(future)
        if not isinstance(error, LOST) or isinstance(error, BrokenGangError):
            return error
        lost = BrokenGangError(f"{what}: {name} is lost ({type(error).__name__})")
        lost.__cause__ = error
        return lost

    def _end(self, why: str) -> dict[str, str]:
        """End the attempt on all workers, and return what each is at."""
        return self._cluster.tell({"op": "daskdl_gang_end", "why": why, **self._where})


def _says_little(error: BaseException) -> int:
    """Return 0 for an error of the task's own, more for one that follows from another's."""
    if not isinstance(error, BrokenGangError):
        return 0
    text = str(error)
    return 1 + ("does not come" in text) + 2 * ("has failed" in text or "ended the" in text)
