"""The gang engine: one task a worker runs iterations and exchanges messages with the others.

The tasks stay, group after group, for ``daskdl.turn-time``; then other tasks on the workers have
their turn. The driver asks the first member for each group. So a group costs the scheduler nothing,
and the driver the same with 256 workers as with two (:mod:`daskdl.train.gang.session`,
:mod:`daskdl.collective.group`). In each iteration members add up slices of the gradient, each
updates its slice of the weights with its slice of the optimizer's state, and all get the new
weights (:mod:`daskdl.train.gang.member`). The additions follow the canonical tree, on any
number of workers (:mod:`daskdl.collective.plan`).

The driver has the state at a group's beginning: it got it from the first member at the end of the
group before, since callbacks and checkpoints need the weights anyway. So if workers are lost, even
all of them, the driver forms a gang of the workers that are there, sends each its slice and runs
the group again; only that group is lost. While the members stay the same, each keeps its own state,
and nothing is sent.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from daskdl.cluster.settings import n_bytes, seconds
from daskdl.cluster.tasks import Place
from daskdl.collective.payload import UNIT
from daskdl.collective.rank_tasks import TURN, take_turn
from daskdl.collective.rendezvous import Rendezvous
from daskdl.compat.dask import Task, TaskRef
from daskdl.data import SampleSet
from daskdl.data.batches import Share
from daskdl.train.engines.job import Job
from daskdl.train.engines.on_cluster import OnCluster
from daskdl.train.engines.step import State
from daskdl.train.engines.tables import Tables
from daskdl.train.gang.buckets import count_of
from daskdl.train.gang.member import run_groups
from daskdl.train.gang.members import Gang, cut
from daskdl.train.gang.outcome import note_of
from daskdl.train.gang.session import Session

if TYPE_CHECKING:
    from dask.typing import Key
    from distributed import Client, Future


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

    ``common`` are the keys of the job and of the gang; ``slices`` the keys of the state's slices by
    rank, None if the members have kept them; ``parts`` the keys of the shards. ``shares`` are of
    consecutive iterations of an epoch, from ``first`` on.
    """
    graph: dict[Key, Any] = {}
    for rank in range(len(gang.addresses)):
        shards, key = gang.shards(rank), (name, attempt, first, rank)
        graph[key] = Task(
            key,
            run_groups,
            *map(TaskRef, common),
            attempt,
            rank,
            first,
            note_of(shares, shards),
            None if slices is None else TaskRef(slices[rank]),
            *(TaskRef(parts[s]) for s in shards),
        )
    return graph


class GangEngine(OnCluster):
    """Run groups of iterations by gangs."""

    group_limit = 1000

    def __init__(
        self, client: Client, job: Job, samples: SampleSet, validation: SampleSet | None
    ) -> None:
        super().__init__(client, job, samples, validation)
        self._patience = seconds("peer-timeout")
        tools = job.tools()
        self._tables = Tables.of(tools.model.joined)
        self._unit = max(UNIT, tools.optimizer.unit)
        self._bytes, self._bucket = 4 * tools.model.vector.size, n_bytes("bucket-size")
        self._formed: tuple[Gang, Future] | None = None
        self._session: Session | None = None
        self._workers: dict[str, int] = {}  # that the session was made for
        self._at = -1  # the iteration whose state the members keep
        self._sent_slices: list[Future] = []
        self._late: dict[str, Future] = {}
        self._cluster.install(Rendezvous(), "start of the fit")
        self._lock = self._cluster.lock(TURN)

    def _run(self, state: State, shares: Sequence[Share], purpose: str) -> State:
        self._late = {w: f for w, f in self._late.items() if f.status == "pending"}
        workers = self._cluster.workers(purpose, without=self._late)
        if self._session is not None and not self._goes_on(workers, state):
            self._leave()
        result = None
        try:
            while result is None:
                if self._session is None:
                    self._session = self._begun(workers, state, shares, purpose)
                result = self._session.group(state.iteration, shares, purpose)
                if result is None or not self._session.stays:
                    self._end_session()
                self._at = state.iteration if result is None else result.iteration
        except BaseException:
            self._end_session()
            self._at = -1
            raise
        self._sent_slices.clear()
        return result

    def evaluate(self, state: State, batch_size: int) -> list[float]:
        """Return the mean loss over all validation samples, and each metric of them."""
        self._leave()  # these are tasks of the same workers
        return super().evaluate(state, batch_size)

    # --- who takes part, and with what

    def _goes_on(self, workers: dict[str, int], state: State) -> bool:
        """Return whether the working members can continue with this state."""
        assert self._session is not None
        stayed = time.monotonic() - self._session.began
        return (
            not self._session.over
            and workers == self._workers
            and self._at == state.iteration
            and stayed < seconds("turn-time")
        )

    def _begun(
        self, workers: dict[str, int], state: State, shares: Sequence[Share], purpose: str
    ) -> Session:
        """Form a gang and give it its first group."""
        place = self._training.placed(workers)
        self._training.wait(purpose)
        gang, gang_key = self._gang(place.addresses)
        job = self._sent_job(gang.addresses[0])
        slices = self._slices(state, gang)
        keys, name = self._training.keys, f"gang-{self._job.id}"
        graph = gang_graph(
            name, self._attempt, gang, state.iteration, (job, gang_key), slices, keys, shares
        )
        take_turn(self._cluster, self._lock, purpose)
        futures = self._cluster.submit(graph, list(graph), Place(gang.addresses))
        self._workers = workers
        return Session(self._cluster, self._job.id, self._attempt, gang, futures)

    def _gang(self, addresses: Sequence[str]) -> tuple[Gang, Key]:
        """Return the gang for the shards at these workers, and its key."""
        members = tuple(dict.fromkeys(addresses))
        owners = tuple(members.index(a) for a in addresses)
        if self._formed is None or not self._formed[0].is_of(members, owners):
            name = f"gang-{self._job.id}-{self._attempt}"
            stays = self._cluster.direct
            buckets = count_of(self._bytes, self._bucket, len(members), bool(self._tables))
            put = name, members, owners, self._patience, buckets
            gang = Gang(*put, stays=stays, unit=self._unit)
            self._formed = gang, self._cluster.send(f"members-{name}", gang, members[0])
            self._at = -1
        gang, future = self._formed
        return gang, future.key

    def _slices(self, state: State, gang: Gang) -> list[Key] | None:
        """Send every member its slice of the state and return the keys; None if they have it."""
        if self._at == state.iteration:
            return None
        slices = [gang.slices(rank, self._tables) for rank in range(len(gang.addresses))]
        self._sent_slices = self._cluster.send_each(
            f"slice-{self._job.id}-{self._attempt}",
            [cut(state.weights, state.slots, slice_of_member) for slice_of_member in slices],
            gang.addresses,
        )
        return [future.key for future in self._sent_slices]

    def _after_loss(self) -> None:
        """Form a new gang; the shards that are still there stay."""
        self._formed = self._job_future = self._state = None
        self._at = -1
        self._sent_slices.clear()

    def forget_state(self) -> None:
        """Note that the driver has changed the state: it is sent again next time."""
        super().forget_state()
        self._at = -1

    def close(self) -> None:
        """Let the workers forget the run."""
        self._leave()
        super().close()
        self._after_loss()
        self._cluster.drop(self._lock)
        self._cluster.tell({"op": "daskdl_gang_forget", "run": self._job.id})

    # --- the members' tasks

    def _leave(self) -> None:
        """Let the working members end."""
        if self._session is not None:
            self._session.leave(self._at)
            self._end_session()

    def _end_session(self) -> None:
        """Release the members' tasks and the cluster's lock."""
        if self._session is not None:
            if self._session.failed:
                self._after_loss()
            self._late |= self._session.close()
            self._session = None
            self._lock.release()
