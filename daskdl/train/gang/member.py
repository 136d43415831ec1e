"""Member: the task of one worker in a gang, which runs groups of iterations with its peers."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from functools import cache, partial
from itertools import zip_longest
from typing import Any

import numpy as np
from distributed import get_worker

from daskdl.collective.communicator import Communicator
from daskdl.collective.rendezvous import Rendezvous
from daskdl.collective.transport.comm import BrokenGangError
from daskdl.data.batches import Share
from daskdl.data.partition import Partition
from daskdl.kernels.runtime.threads import thread_budget
from daskdl.predict.measures import Measured
from daskdl.train.engines import step
from daskdl.train.engines.ahead import Ahead, place_of
from daskdl.train.engines.gradient import Gradient, Stopwatch
from daskdl.train.engines.job import Job
from daskdl.train.engines.step import Record
from daskdl.train.engines.tables import Tables
from daskdl.train.engines.whole_batch import predictions
from daskdl.train.gang.buckets import Buckets
from daskdl.train.gang.members import Gang, Slice, Slots, Vector
from daskdl.train.gang.outcome import MemberState, Result, gathered, noted
from daskdl.train.gang.update import SlicedUpdate, WholeUpdate, gather_all

#: Seconds that members wait for another group, before they let others' tasks have the workers.
IDLE = 1.0


def run_groups(
    job: Job,
    gang: Gang,
    attempt: int,
    rank: int,
    first: int,
    note: Sequence[Any],
    numbers: Slice | None,
    *partitions: Partition,
) -> Result | None:
    """Run a group of iterations with the other members, then the groups that the driver asks for.

    The group begins at iteration ``first``; ``note`` has the samples of this member's shards.
    ``numbers`` has this member's numbers at the group's beginning, None if it kept them from the
    last group. ``partitions`` are its shards.

    The first member of a gang for one group returns the group's result. Otherwise results go to the
    first member's :class:`~daskdl.collective.rendezvous.Mailbox`. Raises BrokenGangError when the
    attempt cannot go on; steps raise TaskError and TrainingError.
    """
    worker = get_worker()
    if worker.address != gang.addresses[rank]:
        raise BrokenGangError(f"{gang.name(rank)} is lost")
    rendezvous = worker.plugins[Rendezvous.name]
    comm = Communicator.connect(rendezvous, gang, job.id, attempt, rank)
    try:
        with closing(Member(rendezvous, job, gang, attempt, comm)) as member:
            result = member.run(first, noted(note), numbers, partitions)
    except BaseException as error:
        comm.close(f"{type(error).__name__}: {error}")
        raise
    finally:
        rendezvous.at.pop(job.id, None)
    comm.close()
    return result


class Member:
    """One member in one attempt at groups.

    An iteration: gradients of its own shards, reduce-scatter, update of its own numbers, all-gather
    of the new weights.
    """

    def __init__(
        self, rendezvous: Rendezvous, job: Job, gang: Gang, attempt: int, comm: Communicator
    ) -> None:
        self.rendezvous, self.job, self.gang = rendezvous, job, gang
        self.attempt, self.comm = attempt, comm
        tools = job.tools()
        self.tables = Tables.of(tools.model.joined)
        shapes, size = self.tables.shapes, tools.model.vector.size
        self.buckets = Buckets(job, gang, comm, size, shapes)
        end, owned = tools.model.flat.size, gang.slices(comm.rank, self.tables)
        slices = [slice(s.start, min(s.stop, end)) for s in owned if s.start < end]
        method = tools.optimizer.part(slices)
        self.ahead = Ahead(job, 1)
        self.update = (
            WholeUpdate(job, gang, comm)
            if method is None
            else SlicedUpdate(job, gang, comm, method)
        )

    def run(
        self,
        first: int,
        shares: list[Share] | None,
        numbers: Slice | None,
        partitions: Sequence[Partition],
    ) -> Result | None:
        """Run the groups; ``shares`` are the first one's, by this member's shards."""
        while shares is not None:
            with thread_budget(self.job.threads):
                records, measured = self._group(first, shares, numbers, partitions)
            self.rendezvous.at[self.job.id] = f"the end of the group from iteration {first} on"
            put = self.job, self.gang, self.comm, self.tables
            result = gathered(*put, self.kept, first, records, measured, self.update.sliced)
            if not self.gang.stays:
                return result
            if result is not None:
                self.rendezvous.mailbox(self.job.id, self.attempt).give(first, result)
            first, numbers = first + len(records), None
            shares = self._next_request(first)
        return None

    def close(self) -> None:
        """Release samples that were drawn and are not needed, and end an exchange under way."""
        self.ahead.close()
        self.buckets.close()

    def _group(
        self,
        first: int,
        shares: list[Share],
        numbers: Slice | None,
        partitions: Sequence[Partition],
    ) -> tuple[list[Record], list[Measured]]:
        """Run one group and keep its state; return each iteration's record and metrics."""
        self.update.begin(*self._beginning(first, numbers))
        records, all_measured = [], []
        for t, (share, following) in enumerate(zip_longest(shares, shares[1:]), first):
            measured = self._gradients(t, share, following, partitions)
            watch = Stopwatch()
            total = Gradient.of_payload(self.buckets.total())
            reduce = watch.lap()
            record, broadcast = self.update.step(t, total)
            records.append(replace(record, reduce=reduce, broadcast=broadcast))
            all_measured.append(measured)
        self.kept = MemberState(self.gang.id, first + len(records), *self.update.end())
        self.rendezvous.keep(self.job.id, self.attempt, self.kept)
        return records, all_measured

    def _gradients(
        self,
        t: int,
        share: Share,
        following: Share | None,
        partitions: Sequence[Partition],
    ) -> Measured:
        """Put the gradients of its own shards into the buckets; return their metrics."""
        self.buckets.begin(t)
        measured: list[Measured] = []
        shards, busy = self.comm.shards, np.flatnonzero(share.counts).tolist()
        for i, shard in enumerate(shards):
            if i not in busy:
                self.buckets.put(shard, None)
        puts: dict[int, step.Put] = {}
        draws: dict[int, Any] = {}
        for i in busy:
            shard, partition, place = shards[i], partitions[i], place_of(t, share, i)
            after = None
            if following is not None and following.counts[i]:
                after = place_of(t + 1, following, i)
            draw_samples = partial(self.ahead.draw, partition, shard, place, after)
            draws[i] = cache(draw_samples) if self.job.whole_batch else draw_samples
            at, start, count = place
            puts[i] = (self.job, self.update.weights, partition, at, shard, start, count)
        predicted = self._predicted(t, puts, draws) if self.job.whole_batch else None
        for i in busy:
            shard = shards[i]
            self.rendezvous.at[self.job.id] = f"iteration {t}, shard {shard}"
            if i == busy[-1] and self.buckets.early:
                back = partial(self.buckets.back, shard)
                gradient = step.gradient(
                    *puts[i], keep=False, draw=draws[i], back=back, predicted=predicted
                )
                self.buckets.last(shard, gradient)
            else:
                gradient = step.gradient(*puts[i], draw=draws[i], predicted=predicted)
                self.buckets.put(shard, gradient)
            measured += gradient.measured
        self.rendezvous.at[self.job.id] = f"iteration {t}"  # with the peers
        return self.job.tools().merged(measured)

    def _predicted(
        self, t: int, puts: dict[int, step.Put], draws: Any
    ) -> dict[int, tuple[Any, ...]]:
        """Return the predictions of all members' shards, float32, by shard."""
        notes = []
        for i, put in puts.items():
            arrays = predictions(*put, draw=draws[i])
            notes.append([put[4], [[list(a.shape), a.tobytes()] for a in arrays]])
        on_first = self.comm.gather(notes, (), t)
        together = self.comm.broadcast(on_first and [note for note, _ in on_first], t)
        return {
            shard: tuple(np.frombuffer(data, np.float32).reshape(shape) for shape, data in arrays)
            for of_member in together
            for shard, arrays in of_member
        }

    def _beginning(self, first: int, numbers: Slice | None) -> tuple[Vector, Slots]:
        """Return all weights, and its own numbers of the optimizer's state or all of them."""
        state = self.rendezvous.kept.pop(self.job.id, None)
        if numbers is not None:
            whole = {
                name: slot
                if self.update.sliced
                else gather_all(self.comm, self.gang, self.tables, slot, first)
                for name, slot in numbers.slots.items()
            }
            return gather_all(self.comm, self.gang, self.tables, numbers.weights, first), whole
        if state is None or (state.gang, state.iteration) != (self.gang.id, first):
            name = self.gang.name(self.comm.rank)
            raise BrokenGangError(f"iteration {first}: {name} has not kept its state")
        return state.weights, state.slots

    def _next_request(self, first: int) -> list[Share] | None:
        """Return the samples of this member's shards in the next group; None if there is none."""
        self.rendezvous.at[self.job.id] = f"nothing, after {first} iterations"
        request = None
        if not self.comm.rank:
            request = self.rendezvous.mailbox(self.job.id, self.attempt).take(IDLE)
        request = self.comm.broadcast(request or None, first)
        return noted(request, self.comm.shards) if request else None
