"""The gang engine: a group of iterations is one task on each worker, which speak to each other.

The scheduler's work is a task per worker and group, however many iterations that has. In each of
them members add up slices of the gradient, each updates its slice of the weights with its slice of
the optimizer's state, and all get the new weights (:mod:`daskdl.train.member`); the additions are
those of the canonical tree, whoever makes them (:mod:`daskdl.train.plan`).

The state of a group's beginning is with the driver, which got every member's slice at the end of
the group before, straight from the workers: it has to have the weights there for callbacks and
checkpoints anyway. So whichever workers are lost, one, several or all, the driver forms a gang of
those that are there, gives each its slice and runs the group again; nothing but that group is lost.
While the members stay the same each goes on with what it has, and nothing is sent out.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dask._task_spec import Task, TaskRef
from dask.typing import Key
from distributed.client import FuturesCancelledError

from daskdl.data import SampleSet
from daskdl.data.batches import Share
from daskdl.errors import ClusterError
from daskdl.train.channel import LOST
from daskdl.train.job import Job
from daskdl.train.meeting import BrokenGangError, Meeting
from daskdl.train.member import Draws, Gang, Part, run_group
from daskdl.train.on_cluster import OnCluster
from daskdl.train.placement import Place
from daskdl.train.settings import seconds
from daskdl.train.slices import cut, put_together
from daskdl.train.step import Record, State
from daskdl.train.tables import Tables

if TYPE_CHECKING:
    from distributed import Client, Future

#: Members of a gang of whom the scheduler is asked in a second whether they are there.
ASKED_IN_A_SECOND = 32

#: Of a future that has not failed.
UNDER_WAY = ("pending", "finished")


def gang_graph(
    name: str,
    attempt: int,
    gang: Gang,
    first: int,
    common: tuple[Key, Key],
    slices: Sequence[Key] | None,
    parts: Sequence[Key],
    shares: Sequence[Share],
) -> dict[Key, Any]:
    """Return a task for each member, whose key ends with its rank.

    Parameters
    ----------
    name, attempt, gang, first :
        Of the tasks, and the iteration they begin with.
    common : pair of keys
        Of the job and of the gang.
    slices : sequence of keys, optional
        Of the state's slices by rank; None if the members have kept them.
    parts : sequence of keys
        Of the shards.
    shares : sequence of Share
        Of the iterations, which follow each other in an epoch.
    """
    graph: dict[Key, Any] = {}
    for rank in range(len(gang.addresses)):
        shards, key = gang.shards(rank), (name, attempt, first, rank)
        graph[key] = Task(
            key,
            run_group,
            *map(TaskRef, common),
            attempt,
            rank,
            first,
            draws_of(shares, shards),
            None if slices is None else TaskRef(slices[rank]),
            *(TaskRef(parts[s]) for s in shards),
        )
    return graph


class GangEngine(OnCluster):
    """Run groups of iterations by gangs.

    Parameters
    ----------
    client : distributed.Client
    job : Job
    samples : SampleSet
    validation : SampleSet, optional
    """

    group_limit = 1000

    def __init__(
        self, client: Client, job: Job, samples: SampleSet, validation: SampleSet | None
    ) -> None:
        super().__init__(client, job, samples, validation)
        self._patience = seconds("peer-timeout")
        self._tables = Tables.of(job.tools().model)
        self._formed: tuple[Gang, Future] | None = None
        self._at = -1  # the iteration whose state the members keep
        self._sent_slices: list[Future] = []
        self._late: dict[str, Future] = {}
        self._cluster.install(Meeting(), "start of the fit")
        self._lock = self._cluster.lock("daskdl-gang")

    def _run(self, state: State, shares: Sequence[Share], what: str) -> State:
        self._late = {w: f for w, f in self._late.items() if f.status == "pending"}
        place = self._training.placed(self._cluster.workers(what, without=self._late))
        self._training.wait(what)
        gang, gang_key = self._gang(place.addresses)
        job = self._sent_job(gang.addresses[0])
        slices = self._given(state, gang)
        keys, name = self._training.keys, f"gang-{self._job.id}"
        graph = gang_graph(
            name, self._attempt, gang, state.iteration, (job, gang_key), slices, keys, shares
        )
        with self._turn(what):
            parts = self._results(graph, gang, what)
        self._sent_slices.clear()
        self._at = state.iteration + len(shares)
        slices = gang.slices(self._tables)
        weights, slots = put_together([part.slice for part in parts], slices, state.weights.size)
        records = tuple(map(slowest, zip(*(part.records for part in parts), strict=True)))
        return State(weights, slots, self._at, records)

    # --- who takes part, and with what

    def _gang(self, addresses: Sequence[str]) -> tuple[Gang, Key]:
        """Return the gang for the shards at these workers, and its key."""
        members = tuple(dict.fromkeys(addresses))
        owners = tuple(members.index(a) for a in addresses)
        if self._formed is None or not self._formed[0].is_of(members, owners):
            name = f"gang-{self._job.id}-{self._attempt}"
            gang = Gang(name, members, owners, self._patience)
            self._formed = gang, self._cluster.send(f"members-{name}", gang, members[0])
            self._at = -1
        gang, future = self._formed
        return gang, future.key

    def _given(self, state: State, gang: Gang) -> list[Key] | None:
        """Send every member its slice of the state and return their keys; None if they have it."""
        if self._at == state.iteration:
            return None
        slices = gang.slices(self._tables)
        self._sent_slices = self._cluster.send_each(
            f"slice-{self._job.id}-{self._attempt}",
            [cut(state.weights, state.slots, own) for own in slices],
            gang.addresses,
        )
        return [future.key for future in self._sent_slices]

    def _after_loss(self) -> None:
        """Form a new gang; the shards that are still there stay."""
        self._formed = self._job_future = self._state = None
        self._sent_slices.clear()

    def forget_state(self) -> None:
        """Send the state again next time: the driver has changed it."""
        super().forget_state()
        self._at = -1

    def close(self) -> None:
        """Let the workers forget the run."""
        super().close()
        self._after_loss()
        self._cluster.drop(self._lock)
        self._cluster.tell({"op": "daskdl_gang_forget", "run": self._job.id})

    # --- one attempt

    @contextmanager
    def _turn(self, what: str) -> Iterator[None]:
        """Hold the cluster's lock: members of two gangs that wait for a worker would for ever."""
        limit = time.monotonic() + seconds("stall-timeout")
        while not self._lock.acquire(timeout=5):
            self._cluster.workers(what)
            if time.monotonic() > limit:
                raise ClusterError(
                    f"{what}: expected a turn within daskdl.stall-timeout, found another fit at "
                    "work on the same cluster"
                )
        try:
            yield
        finally:
            self._lock.release()

    def _results(self, graph: dict[Key, Any], gang: Gang, what: str) -> list[Part]:
        """Run the tasks and return what the members return."""
        futures = self._cluster.submit(graph, list(graph), Place(gang.addresses))
        try:
            self._wait(futures, gang, what)
            errors = [
                self._error(future, gang.name(rank), what)
                for rank, future in enumerate(futures)
                if future.status != "finished"
            ]
            if errors:
                raise min(errors, key=_says_little)
            return self._cluster.fetch(futures)
        finally:
            for future, address in zip(futures, gang.addresses, strict=True):
                if future.status == "pending":
                    self._late[address] = future
                else:
                    future.release()

    def _wait(self, futures: Sequence[Future], gang: Gang, what: str) -> None:
        """Wait until all are done, or for a while when one is lost or has failed."""
        began = asked = time.monotonic()
        ended, stall = 0.0, seconds("stall-timeout")
        # Members notice by themselves when a peer is lost; to ask costs as much as there are.
        pause, lost = len(gang.addresses) / ASKED_IN_A_SECOND, list[int]()
        while not self._all_done(futures):
            now = time.monotonic()
            if now - asked > pause:
                alive, asked = self._cluster.alive(what), now
                lost = [rank for rank, a in enumerate(gang.addresses) if a not in alive]
            if not ended and (lost or any(f.status not in UNDER_WAY for f in futures)):
                self._end(f"{gang.name(lost[0])} is lost" if lost else "another member has failed")
                ended = now
            late = [rank for rank, future in enumerate(futures) if future.status == "pending"]
            if ended and now - ended > self._patience:  # a gradient may take long
                return
            if late and now - began > stall:
                at = self._end("it lasted too long")
                # Others wait for the one that is at a shard.
                rank = next((r for r in late if "shard" in at.get(gang.addresses[r], "")), late[0])
                where = at.get(gang.addresses[rank]) or "work"
                raise ClusterError(
                    f"{what}: expected an end within daskdl.stall-timeout = {stall:g} s, found "
                    f"{gang.name(rank)} still at {where}"
                )

    def _all_done(self, futures: Sequence[Future]) -> bool:
        try:
            return self._cluster.done(futures, 1.0)
        except FuturesCancelledError:  # with what a lost worker was to get
            return True

    def _error(self, future: Future, name: str, what: str) -> BaseException:
        """Return why a member has no result."""
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
        where = {"run": self._job.id, "attempt": self._attempt}
        return self._cluster.tell({"op": "daskdl_gang_end", "why": why, **where})


def _says_little(error: BaseException) -> int:
    """Return 0 for an error of the task's own, more for one that follows from another's."""
    if not isinstance(error, BrokenGangError):
        return 0
    text = str(error)
    return 1 + ("does not come" in text) + 2 * ("has failed" in text or "ended the" in text)


def draws_of(shares: Sequence[Share], shards: Sequence[int]) -> Draws:
    """Return what a member's shards give to iterations that follow each other."""
    first = shares[0]
    starts = tuple(int(first.starts[s]) for s in shards)
    counts = tuple(tuple(int(share.counts[s]) for share in shares) for s in shards)
    return Draws(first.epoch, first.iteration, starts, counts)


def slowest(records: Sequence[Record]) -> Record:
    """Return one record of all members' of an iteration.

    Members that are ready early wait for the last in their reduction, so the shortest is that.
    """
    return replace(
        records[0],
        update=max(r.update for r in records),
        reduce=min(r.reduce for r in records),
        broadcast=min(r.broadcast for r in records),
    )
