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
from daskdl.train.engines.ahead import Ahead, Place
from daskdl.train.engines.gradient import Gradient, Stopwatch
from daskdl.train.engines.job import Job
from daskdl.train.engines.step import Record
from daskdl.train.engines.tables import Tables
from daskdl.train.engines.whole_batch import predictions
from daskdl.train.gang.buckets import Buckets
from daskdl.train.gang.members import Gang, Slice, Slots, Vector
from daskdl.train.gang.outcome import Draw, Draws, MemberState, Result, draws_of, gathered, noted
from daskdl.train.gang.update import SlicedUpdate, WholeUpdate, gather_all

#: Seconds that members wait for another group, before they let others' tasks have the workers.
IDLE = 1.0


def run_groups(
    job: Job,
    gang: Gang,
    attempt: int,
    rank: int,
    first: int,
    draws: Draws,
    numbers: Slice | None,
    *partitions: Partition,
) -> Result | None:
    """Run a group of iterations with the other members, then the groups that the driver asks for.

    The group begins at iteration ``first``. ``draws`` has the samples of each iteration, by shard.
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
            result = member.run(first, draws, numbers, partitions)
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
        self, first: int, draws: Draws, numbers: Slice | None, partitions: Sequence[Partition]
    ) -> Result | None:
        """Run the groups."""
        while True:
            with thread_budget(self.job.threads):
                records, measured = self._group(first, draws, numbers, partitions)
            self.rendezvous.at[self.job.id] = f"the end of the group from iteration {first} on"
            put = self.job, self.gang, self.comm, self.tables
            result = gathered(*put, self.kept, first, records, measured, self.update.sliced)
            if not self.gang.stays:
                return result
            if result is not None:
                self.rendezvous.mailbox(self.job.id, self.attempt).give(first, result)
            first, numbers = first + len(records), None
            shares = self._next_request(first)
            if shares is None:
                return None
            draws = draws_of(shares, self.comm.shards)

    def close(self) -> None:
        """Release samples that were drawn and are not needed, and end an exchange under way."""
        self.ahead.close()
        self.buckets.close()

    def _group(
        self, first: int, draws: Draws, numbers: Slice | None, partitions: Sequence[Partition]
    ) -> tuple[list[Record], list[Measured]]:
        """Run one group and keep its state; return each iteration's record and metrics."""
        self.update.begin(*self._beginning(first, numbers))
        records, all_measured = [], []
        each = list(draws.each())
        for t, (draw, following) in enumerate(zip_longest(each, each[1:]), first):
            measured = self._gradients(t, draw, following, partitions)
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
        draw: Draw,
        following: Draw | None,
        partitions: Sequence[Partition],
    ) -> Measured:
        """Put the gradients of its own shards into the buckets; return their metrics."""
        self.buckets.begin(t)
        at = t, draw.epoch, draw.iteration
        measured: list[Measured] = []
        shards = [*zip(self.comm.shards, partitions, draw.shards, strict=True)]
        busy = [i for i, (*_, (_, count)) in enumerate(shards) if count]
        for shard, _, (_, count) in shards:
            if not count:
                self.buckets.put(shard, None)
        puts: dict[int, step.Put] = {}
        draws: dict[int, Any] = {}
        for i in busy:
            shard, partition, (start, count) = shards[i]
            after: Place | None = None
            if following is not None and following.shards[i][1]:
                after = (t + 1, following.epoch, following.iteration), *following.shards[i]
            draw_samples = partial(self.ahead.draw, partition, shard, (at, start, count), after)
            draws[i] = cache(draw_samples) if self.job.whole_batch else draw_samples
            puts[i] = (self.job, self.update.weights, partition, at, shard, start, count)
        predicted = self._predicted(t, puts, draws) if self.job.whole_batch else None
        for i in busy:
            shard = shards[i][0]
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
        """Return the samples of the next group; None if there is none."""
        self.rendezvous.at[self.job.id] = f"nothing, after {first} iterations"
        request = None
        if not self.comm.rank:
            request = self.rendezvous.mailbox(self.job.id, self.attempt).take(IDLE)
        request = self.comm.broadcast(request or None, first)
        return noted(request) if request else None
