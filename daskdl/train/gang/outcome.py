"""A group's samples and outcome: messages to the members of a gang, and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.collective.communicator import Communicator
from daskdl.collective.payload import join
from daskdl.data.batches import Share
from daskdl.predict.measures import Measured, plain, statistics_of
from daskdl.train.engines.job import Job
from daskdl.train.engines.step import Record, State
from daskdl.train.engines.tables import Tables
from daskdl.train.gang.members import Gang, Slice, Slots, Vector, put_together


def note_of(shares: Sequence[Share], shards: Any = slice(None)) -> list[Any]:
    """Return the samples that some shards, by default all, give to a group, as plain data."""
    starts = np.asarray(shares[0].starts, np.int64)[shards]
    counts = np.asarray([share.counts for share in shares])[:, shards]
    counts = counts.astype(np.min_scalar_type(counts.max()))
    first = shares[0]
    return [first.epoch, first.iteration, starts.tobytes(), counts.dtype.str, counts.tobytes()]


def noted(note: Sequence[Any], shards: Any = slice(None)) -> list[Share]:
    """Undo :func:`note_of`: return the shares of some of its shards, by default all."""
    epoch, iteration, starts, kind, counts = note
    start = np.frombuffer(starts, np.int64)
    all_counts = np.frombuffer(counts, kind).reshape(-1, start.size)
    start, shares = start[shards], []
    for i, count in enumerate(all_counts[:, shards].astype(np.int64)):
        shares.append(Share(epoch, iteration + i, start, count))
        start = start + count
    return shares


#: The outcome of a group: weights and state of all members, and the iterations' records.
Result = State


@dataclass(frozen=True)
class MemberState:
    """A member's state at a group's end, where the next group begins."""

    gang: str
    iteration: int
    weights: Vector = field(repr=False)
    slots: Slots = field(repr=False)


def gathered(
    job: Job,
    gang: Gang,
    comm: Communicator,
    tables: Tables,
    state: MemberState,
    first: int,
    records: Sequence[Record],
    measured: Sequence[Measured],
    sliced_state: bool,
) -> Result | None:
    """Gather a group's outcome on the first member, which returns it; others return None.

    The group began at iteration ``first``; ``state`` is this member's state at its end. ``records``
    has this member's seconds of each iteration, ``measured`` the metrics of its shards.
    ``sliced_state``: whether each member has only its own numbers of the optimizer's state.
    """
    weights, slots = state.weights, dict(state.slots)
    sliced = [name for name, s in slots.items() if s.ndim and sliced_state]
    slices = [gang.slices(rank, tables) for rank in range(comm.size)]
    times: NDArray[np.float64] = np.array([(r.reduce, r.update, r.broadcast) for r in records])
    arrays = [slots[name] for name in sliced]
    if job.rounded:  # other members have these numbers rounded
        arrays.append(join(weights, slices[comm.rank]))
    note = [[plain(m) for m in measured], times.tobytes()]
    notes_and_arrays = comm.gather(note, arrays, first)
    if notes_and_arrays is None:
        return None
    parts = [
        Slice(
            arrays_of[-1] if job.rounded else join(weights, s),
            dict(zip(sliced, arrays_of, strict=False)),
        )
        for (_, arrays_of), s in zip(notes_and_arrays, slices, strict=True)
    ]
    whole_weights, whole = put_together(parts, slices, weights.size)
    all_times = np.array([np.frombuffer(note[1]) for note, _ in notes_and_arrays])
    all_times = all_times.reshape(len(notes_and_arrays), *times.shape)
    # Members that are ready early wait for the last in their reduction: the shortest is that.
    shortest, longest = all_times.min(0), all_times.max(0)
    notes = [[statistics_of(one) for one in note[0]] for note, _ in notes_and_arrays]
    tools, combined = job.tools(), []
    for i, record in enumerate(records):
        metrics = tools.values([of_one[i] for of_one in notes if of_one[i]])
        reduce, broadcast = float(shortest[i, 0]), float(shortest[i, 2])
        update = float(longest[i, 1])
        combined.append(
            replace(record, reduce=reduce, update=update, broadcast=broadcast, metrics=metrics)
        )
    return Result(whole_weights, {**slots, **whole}, state.iteration, tuple(combined))
