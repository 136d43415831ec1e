"""Member: the task of one worker in a gang, which runs groups of iterations with its peers."""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from distributed import get_worker
from numpy.typing import NDArray

from daskdl.collective.codec import decode, encode, encoded_size, round_in_place
from daskdl.collective.communicator import Exchange
from daskdl.collective.parts import Slice, packed, put_together, slice_of, unpack
from daskdl.collective.plan import Span
from daskdl.collective.relay import passed_down, passed_up
from daskdl.collective.rendezvous import BrokenGangError, Kept, Meeting
from daskdl.collective.sums import Sums, views
from daskdl.data.batches import Share
from daskdl.data.partition import Partition
from daskdl.kernels.runtime.memory import empty
from daskdl.kernels.runtime.threads import thread_budget
from daskdl.kernels.vectors.arithmetic import copied, copy_to
from daskdl.predict.measures import Measured
from daskdl.train import step
from daskdl.train.draws import Draw, Draws, draws_of, noted
from daskdl.train.job import Job
from daskdl.train.members import Gang, owned
from daskdl.train.step import Record, State
from daskdl.train.tables import Tables
from daskdl.train.tableshare import TableShare

Vector = NDArray[np.float32]
Slots = dict[str, Vector]

#: Seconds that members wait for another group, before they let others' tasks have the workers.
IDLE = 1.0


@dataclass(frozen=True)
class Result:
    """What a group comes to: weights and the optimizer's state of all members, and the records."""

    weights: Vector = field(repr=False)
    slots: Slots = field(repr=False)
    iteration: int
    records: tuple[Record, ...]

    def __sizeof__(self) -> int:
        return self.weights.nbytes + sum(slot.nbytes for slot in self.slots.values())


def run_groups(
    job: Job,
    gang: Gang,
    attempt: int,
    rank: int,
    first: int,
    draws: Draws,
    given: Slice | None,
    *partitions: Partition,
) -> Result | None:
    """Run a group of iterations with the other members, and those that the driver asks for then.

    Parameters
    ----------
    job, gang, attempt, rank :
        Of what this is a part.
    first : int
        Iteration at which the group begins.
    draws : Draws
        What the shards give to each iteration.
    given : Slice, optional
        This member's numbers at the group's beginning; None if it kept them from the last group.
    *partitions : Partition
        Its shards.

    Returns
    -------
    Result or None
        That of the group, by the first member of a gang that is asked for one only. Others answer
        at the first member's :class:`~daskdl.train.desk.Desk`.

    Raises
    ------
    BrokenGangError
        When the attempt cannot go on.
    TaskError, TrainingError
        As the steps do.
    """
    worker = get_worker()
    if worker.address != gang.addresses[rank]:
        raise BrokenGangError(f"{gang.name(rank)} is lost")
    return Member(worker.plugins[Meeting.name], job, gang, attempt, rank).run(
        first, draws, given, partitions
    )


class Member:
    """One member in one attempt at groups."""

    def __init__(self, meeting: Meeting, job: Job, gang: Gang, attempt: int, rank: int) -> None:
        self.job, self.gang, self.rank = job, gang, rank
        self.meeting = meeting
        self.plan, self.shards = gang.plan(rank), gang.shards(rank)
        peers = {peer: gang.addresses[peer] for peer in self.plan.peers}
        names = {peer: gang.name(peer) for peer in peers}
        self.attempt = attempt
        self.exchange = Exchange(meeting, job.id, attempt, rank, peers, names, gang.patience)
        tools = job.tools()
        self.vector = tools.model.vector
        self.size = self.vector.size
        self.sums = Sums(self.plan, self.size, job.rounded)
        self.owned = self.sums.owned
        end = tools.model.flat.size  # of the parameters; behind them are buffers
        own = [slice(s.start, min(s.stop, end)) for s in self.owned if s.start < end]
        self.parameters = sum(s.stop - s.start for s in own)
        # That of the own numbers. There is none if a step needs all, as one that clips the
        # gradient's norm: then every member makes the whole step.
        self.method = tools.optimizer.part(own)
        self.tables = Tables.of(tools.model)
        self.places = owned(self.plan, self.tables)
        self.measured: list[Measured] = []  # of the own shards, by iteration of the group
        self.share = (
            TableShare(tools.model, self.plan, self.method, self.exchange) if self.tables else None
        )

    def run(
        self, first: int, draws: Draws, given: Slice | None, partitions: Sequence[Partition]
    ) -> Result | None:
        """Run the groups."""
        try:
            self.exchange.open()
            while True:
                with thread_budget(self.job.threads):
                    records = self._group(first, draws, given, partitions)
                result = self._report(first, records)
                if not self.gang.stays:
                    break
                if result is not None:
                    self.meeting.desk(self.job.id, self.attempt).give(first, result)
                first, given, result = first + len(records), None, None
                shares = self._word(first)
                if shares is None:
                    break
                draws = draws_of(shares, self.shards)
        except BaseException as error:
            self.exchange.close(f"{type(error).__name__}: {error}")
            raise
        finally:
            self.meeting.at.pop(self.job.id, None)
        self.exchange.close()
        return result

    def _group(
        self, first: int, draws: Draws, given: Slice | None, partitions: Sequence[Partition]
    ) -> list[Record]:
        """Run one group and keep what it comes to."""
        records = []
        self.measured = []
        weights, slots = self._begin(first, given)
        if self.share is not None:
            end = sum(s.stop - s.start for s in self.owned)
            weights, slots = self.share.begin(weights, slots, end)
        else:  # to change in place: what was kept, or sent, may be somebody's yet
            slots = {name: copied(slot) for name, slot in slots.items()}
            weights = weights if self.method is not None else copied(weights)
        if self.method is not None:  # then the weights change in place, and the model uses these
            copy_to(self.vector, weights[: self.size])
            weights = self.vector
            # Those that the updates are made of, where all else is computed with rounded ones.
            self.own = packed(weights, self.owned)
            if self.job.rounded:
                self.own = copied(self.own)
                round_in_place(weights, self.job.rounded)
        for t, draw in enumerate(draws.each(), first):
            self._add_up(t, draw, partitions, weights)
            weights, slots, record = self._step(t, weights, slots)
            records.append(record)
        if weights is self.vector:
            weights = copied(weights)  # others use the model
            unpack(self.own, weights, self.owned)
            if self.share is not None:
                weights, slots = self.share.end(weights, slots)
        self.kept = Kept(self.gang.id, first + len(records), weights, slots)
        self.meeting.keep(self.job.id, self.attempt, self.kept)
        return records

    def _report(self, first: int, records: list[Record]) -> Result | None:
        """Hand what the group has come to up to the first member, which returns it."""
        self.meeting.at[self.job.id] = f"the end of the group from iteration {first} on"
        weights, slots = self.kept.weights, dict(self.kept.slots)
        sliced = [name for name, s in slots.items() if s.ndim and self.method is not None]
        own = [slots[name] for name in sliced]
        if self.job.rounded:  # what others have of the own weights is rounded
            own.append(packed(weights, self.places))
        slices = self.gang.slices(self.tables)
        lengths = [sum(s.stop - s.start for s in of_one) for of_one in slices]
        times = np.array([(r.reduce, r.update, r.broadcast) for r in records])
        all_relays = self.gang.relays
        note = pickle.dumps(self.measured)
        passed = passed_up(self.exchange, all_relays, self.rank, first, own, lengths, times, note)
        if passed is None:
            return None
        arrays, times, notes = passed
        measured = zip(*map(pickle.loads, notes), strict=True)  # by iteration
        metrics = [self.job.tools().values([m for m in held if m]) for held in measured]
        parts = [
            Slice(
                of_one[-1] if self.job.rounded else packed(weights, s),
                dict(zip(sliced, of_one, strict=False)),
            )
            for of_one, s in zip(arrays, slices, strict=True)
        ]
        weights, whole = put_together(parts, slices, weights.size)
        # Members that are ready early wait for the last in their reduction: the shortest is that.
        combined = [
            replace(record, reduce=reduce, update=update, broadcast=broadcast, metrics=values)
            for record, (reduce, update, broadcast), values in zip(
                records, times.tolist(), metrics, strict=True
            )
        ]
        return Result(weights, {**slots, **whole}, self.kept.iteration, tuple(combined))

    def _word(self, first: int) -> list[Share] | None:
        """Return what the next group is; None if there is to be none."""
        self.meeting.at[self.job.id] = f"nothing, after {first} iterations"
        word = None
        if not self.rank:
            word = self.meeting.desk(self.job.id, self.attempt).take(IDLE)
        relay = self.gang.relays[self.rank]
        note = passed_down(self.exchange, relay, first, {"word": word} if word else None)
        return noted(note["word"]) if note else None

    def _begin(self, first: int, given: Slice | None) -> tuple[Vector, Slots]:
        """Return the weights, and the optimizer's state of the own numbers or of all."""
        kept = self.meeting.kept.pop(self.job.id, None)
        if given is not None:
            return self._all(first, "weights", given.weights), {
                name: slot if self.method is not None else self._all(first, name, slot)
                for name, slot in given.slots.items()
            }
        if kept is None or (kept.gang, kept.iteration) != (self.gang.id, first):
            name = self.gang.name(self.rank)
            raise BrokenGangError(f"iteration {first}: {name} has not kept its state")
        return kept.weights, kept.slots

    def _all(self, t: int, kind: str, own: Vector) -> Vector:
        """Return the whole vector of which every member has been given its own numbers."""
        if not own.ndim:  # a schedule's: everybody has all of it
            return own
        vector: Vector = empty(self.tables.size, np.float32)
        unpack(own, vector, self.places)

        def parts(spans: Sequence[Span]) -> list[Vector]:
            tables = [vector[s] for s in self.tables.slices(spans)]
            return views(vector[: self.size], spans) + tables

        for i, phase in enumerate(self.plan.gather):
            sends = {peer: (0, parts(spans)) for peer, spans in phase.sends.items()}
            room = {peer: parts(spans) for peer, spans in phase.receives.items()}
            self.exchange.swap(t, f"{kind} {i}", sends, room)
        return vector

    def _add_up(self, t: int, draw: Draw, partitions: Sequence[Partition], weights: Vector) -> None:
        """Compute the gradients of the own shards, and with the peers their sum."""
        self.sums.begin()
        at = t, draw.epoch, draw.iteration
        measured: list[Measured] = []
        for shard, partition, (start, count) in zip(
            self.shards, partitions, draw.shards, strict=True
        ):
            self.meeting.at[self.job.id] = f"iteration {t}, shard {shard}"
            put = (self.job, weights, partition, at, shard, start, count)
            found = step.gradient(*put) if count else None
            self.sums.put(shard, found)
            measured += found.measured if found else ()
            if self.share is not None:
                self.share.put(shard, found)
        self.measured.append(self.job.tools().merged(measured))
        self.meeting.at[self.job.id] = f"iteration {t}"  # with the peers
        self._clock = time.perf_counter()
        for i, phase in enumerate(self.plan.reduce):
            sends, room = self.sums.outgoing(phase), self.sums.room(i)
            swap = partial(self.share.reduce, phase) if self.share else self.exchange.swap
            self.sums.take(i, swap(t, f"reduce {i}", sends, room))

    def _step(self, t: int, weights: Vector, slots: Slots) -> tuple[Vector, Slots, Record]:
        """Update the own numbers and gather all; or gather the gradient and update all."""
        total, clock = self.sums.total(), [self._clock, time.perf_counter()]
        if self.share is not None:
            self.share.step(t, total.samples)
        stepped = time.perf_counter() - clock[1]
        if self.method is not None:
            after = step.update(
                self.job,
                State(self.own, slots, t),
                total,
                method=self.method,
                parameters=self.parameters,
                summed=True,
                overwrite=True,
            )
            self.own = after.weights
            unpack(self.own, weights, self.owned)
            if self.job.rounded:
                for s in self.owned:
                    round_in_place(weights[s], self.job.rounded - s.start)
            clock.append(time.perf_counter())
            self._gather(t, "weights", weights, self.job.rounded)
            clock.append(time.perf_counter())
        else:
            vector: Vector = empty(self.size, np.float32)
            unpack(total.vector, vector, self.owned)
            self._gather(t, "gradient", vector)
            rows = self.share.total() if self.share else ()
            whole = replace(total, vector=vector, rows=rows)
            clock += [time.perf_counter()] * 2
            state = State(weights, slots, t)
            after = step.update(self.job, state, whole, summed=True, overwrite=True)
            weights = after.weights
        reduce, broadcast = clock[1] - clock[0], clock[3] - clock[2]
        record = after.records[0]
        record = replace(record, reduce=reduce, update=record.update + stepped, broadcast=broadcast)
        return weights, after.slots, record

    def _gather(self, t: int, kind: str, vector: Vector, rounded: int = 0) -> None:
        """Fill a vector of which every member has its own numbers; the first come rounded."""

        def parts(spans: Sequence[Span]) -> Iterator[tuple[Vector, int]]:
            for span, view in zip(spans, views(vector, spans), strict=True):
                yield view, rounded - slice_of(span, self.size).start

        for i, phase in enumerate(self.plan.gather):
            what = t, f"{kind} {i}"
            swap = partial(self.share.hand_on, phase) if self.share else self.exchange.swap
            if not rounded:
                sends = {peer: (0, views(vector, spans)) for peer, spans in phase.sends.items()}
                room = {peer: views(vector, spans) for peer, spans in phase.receives.items()}
                swap(*what, sends, room)
                continue
            coded = {
                peer: (0, [encode(view, first) for view, first in parts(spans)])
                for peer, spans in phase.sends.items()
            }
            words = {
                peer: [empty(encoded_size(v.size, first), np.uint16) for v, first in parts(spans)]
                for peer, spans in phase.receives.items()
            }
            swap(*what, coded, words)
            for peer, spans in phase.receives.items():
                for (view, first), bits in zip(parts(spans), words[peer], strict=True):
                    decode(bits, first, view)
