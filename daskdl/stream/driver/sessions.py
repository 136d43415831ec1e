"""Sessions: all sessions of a stream, their slots, and the recovery from a lost one."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from distributed import KilledWorker

from daskdl.cluster.client import Cluster
from daskdl.cluster.settings import seconds
from daskdl.errors import ClusterError, MissingExtraError, SettingsError
from daskdl.stream.driver.partitions import Ownership
from daskdl.stream.driver.remote import RemoteSession
from daskdl.stream.queues.records import Partition
from daskdl.stream.worker.model_file import ModelFile
from daskdl.stream.worker.orders import Report, Spec, Work

logger = logging.getLogger(__name__)

#: Seconds until a session is begun again on a worker where one has just failed.
AGAIN = 1.0
#: Seconds after which a driver knows whether another has taken the group over.
TAKEN = 3.0
#: Sessions that may fail one after the other without a record between them.
FAILURES = 20


@dataclass
class HandOver:
    """Partitions whose session was lost."""

    session: int
    worker: str
    why: str
    #: When the session was last heard of (s, ``time.monotonic()``).
    heard: float
    #: Those that nobody reads yet.
    partitions: set[Partition]
    #: From ``heard`` to when the others read all of them; NaN before.
    seconds: float = float("nan")


class Sessions:
    """All sessions of a stream.

    ``purpose`` begins errors, ``work`` is the work of a session, and ``model`` its first model.
    """

    def __init__(
        self, cluster: Cluster, purpose: str, work: Work, silence: float, model: ModelFile
    ) -> None:
        self._cluster, self._purpose, self._work = cluster, purpose, work
        self._sink, self._silence = work.sink, silence
        self.model, self._before = model, model
        self.sessions: dict[int, RemoteSession] = {}
        #: Last reports of sessions that have ended.
        self.past: list[Report] = []
        self.hand_overs: list[HandOver] = []
        #: Models that workers could not use, by sha256, and why.
        self.rejected: dict[str, str] = {}
        self._ownership, self._number = Ownership(), 0
        self._fencing: dict[int, tuple[RemoteSession, Future[None], HandOver]] = {}
        self._not_before: dict[str, float] = {}
        self._pool = ThreadPoolExecutor(8, thread_name_prefix="daskdl-fence")
        self._workers_seen = time.monotonic()
        self._failures = self._done = 0

    def fence_all(self, slots: int) -> None:
        """Stop writers of earlier runs from committing; there is at most one a partition."""
        if self._sink.exactly_once:
            list(self._pool.map(self._sink.fence, range(slots)))

    def use(self, model: ModelFile) -> None:
        """Make all sessions use another model, as soon as they have it."""
        self._before, self.model = self.model, model
        self.rejected.pop(model.sha256, None)

    def look(self, partitions: Sequence[Partition]) -> None:
        """Ask all sessions, start and end some, and assign the partitions."""
        running = self._cluster.running(self._purpose)
        there = self._cluster.alive(self._purpose)
        self._check_workers(running)
        for session in list(self.sessions.values()):
            session.ask()
            self._check(session, there)
        self._take_fenced()
        self._begin_on(running, len(partitions))
        self._check_models()
        taking = [n for n, s in self.sessions.items() if s.begun and s.spec.address in running]
        for number, session in self.sessions.items():
            if session.follows:
                self._ownership.follows(number, session.orders.partitions)
        shares = self._ownership.shares(partitions, taking)
        for number, session in self.sessions.items():
            share = shares.get(number, ())
            # One whose worker is about to leave ends when it has let go of its partitions.
            leaving = session.spec.address not in running
            free = session.follows and not session.orders.partitions
            session.order(share, self.model.sha256, stop=leaving and free)
        self._close_hand_overs()

    def _check_workers(self, running: dict[str, int]) -> None:
        now, limit = time.monotonic(), seconds("no-workers-timeout")
        if running:
            self._workers_seen = now
        elif now - self._workers_seen > limit:
            raise ClusterError(
                f"{self._purpose}: expected workers, found none for {limit:g} s; start workers and "
                "run again, it goes on where it has committed"
            )

    def _check(self, session: RemoteSession, there: set[str]) -> None:
        """Find out whether a session is lost."""
        silent = time.monotonic() - session.heard
        if session.over(there):
            gone = session.spec.address not in there
            self._lost(session, "its worker has left" if gone else session.why())
        elif silent > self._silence:
            self._lost(session, f"no answer for {silent:.1f} s")

    def _lost(self, session: RemoteSession, why: str) -> None:
        number, address = session.spec.number, session.spec.address
        self._check_failure(session.failure(), address)
        del self.sessions[number]
        session.close()
        if session.report is not None:
            self.past.append(session.report)
        partitions = {p for p, s in self._ownership.owners.items() if s == number}
        logger.warning("session %d at %s: %s", number, address, why)
        hand_over = HandOver(number, address, why, session.heard, partitions)
        self.hand_overs.append(hand_over)
        # Another driver may have ended it, which is known in a moment.
        ended = session.report is not None and session.report.state in ("fenced", "stopped")
        self._not_before[address] = time.monotonic() + (TAKEN if ended else AGAIN)
        fenced = self._pool.submit(self._sink.fence, session.spec.slot)
        self._fencing[number] = session, fenced, hand_over

    def _check_failure(self, error: BaseException | None, address: str) -> None:
        """Raise an error that another session would have, too."""
        if error is None or isinstance(error, KilledWorker):
            return
        done = sum(r.records for r in self.past) + sum(
            s.report.records for s in self.sessions.values() if s.report
        )
        self._failures = 1 if done > self._done else self._failures + 1
        self._done = done
        if isinstance(error, SettingsError | MissingExtraError) or self._failures > FAILURES:
            raise ClusterError(f"{self._purpose}, worker {address}: {error}") from error

    def _take_fenced(self) -> None:
        """Free the partitions of lost sessions that can commit no more."""
        for number, (session, fenced, hand_over) in list(self._fencing.items()):
            if not fenced.done():
                continue
            del self._fencing[number]
            if error := fenced.exception():
                logger.warning("session %d could not be fenced yet: %s", number, error)
                again = self._pool.submit(self._sink.fence, session.spec.slot)
                self._fencing[number] = session, again, hand_over
                continue
            self._ownership.follows(number, ())

    def _close_hand_overs(self) -> None:
        reading = {p for s in self.sessions.values() if s.follows for p in s.orders.partitions}
        now = time.monotonic()
        for it in self.hand_overs:
            if it.seconds != it.seconds and it.session not in self._fencing:
                it.partitions -= reading
                if not it.partitions:
                    it.seconds = now - it.heard

    def _begin_on(self, running: dict[str, int], most: int) -> None:
        busy = {s.spec.address for s in self.sessions.values()}
        slots = {s.spec.slot for s in self.sessions.values()}
        slots |= {s.spec.slot for s, _, _ in self._fencing.values()}
        free = [slot for slot in range(most) if slot not in slots]
        now = time.monotonic()
        for address in sorted(running):
            if address in busy or not free or now < self._not_before.get(address, 0):
                continue
            self._number += 1
            spec = Spec(self._work, self._number, free.pop(0), address)
            self.sessions[self._number] = RemoteSession(self._cluster, spec, self.model.sha256)

    def _check_models(self) -> None:
        for session in self.sessions.values():
            report = session.report
            if report is None:
                continue
            if self.model.sha256 not in report.models:
                session.send(self.model)
            if why := report.rejected.get(self.model.sha256):
                if self.model is self._before:
                    raise ClusterError(f"{self._purpose}, worker {session.spec.address}: {why}")
                logger.warning("model %s: %s; %s goes on", self.model.name, why, self._before.name)
                self.rejected[self.model.sha256] = why
                self.model = self._before

    def ended(self, partitions: Sequence[Partition]) -> bool:
        """Return whether all partitions were read and committed to their ends."""
        reading = {
            p
            for s in self.sessions.values()
            if s.follows and s.report is not None and s.report.ended
            for p in s.orders.partitions
        }
        return reading.issuperset(partitions)

    def stop(self, within: float) -> None:
        """Make all sessions finish and commit their batches.

        Raises ClusterError if a session has not within ``within`` seconds; the next run reads what
        it has not committed.
        """
        limit, aborted = time.monotonic() + within, dict[str, str]()
        while self.sessions:
            there = self._cluster.alive(self._purpose)
            for number, session in list(self.sessions.items()):
                session.order(session.orders.partitions, session.orders.model, True, within)
                session.ask()
                if session.over(there):
                    if session.report is not None:
                        self.past.append(session.report)
                        if session.report.state == "aborted":
                            aborted[session.spec.address] = session.report.error
                    del self.sessions[number]
                    session.close()
            if self.sessions and time.monotonic() > limit:
                names = ", ".join(s.spec.address for s in self.sessions.values())
                raise ClusterError(
                    f"{self._purpose}: expected all workers to finish within {within:g} s, found "
                    f"{names} still at work; what is not committed is read again by the next run"
                )
            time.sleep(0.02)
        for address, why in aborted.items():
            raise ClusterError(
                f"{self._purpose}: expected all workers to commit what was under way within "
                f"{within:g} s, found that {address} could not ({why}); the next run reads it again"
            )

    def close(self) -> None:
        """Release everything; remaining sessions end when nobody asks them."""
        for session in self.sessions.values():
            session.close()
        self._pool.shutdown(wait=False, cancel_futures=True)
