"""The outcome of a group of iterations: kept by each member, gathered on the first one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from daskdl.collective.communicator import Communicator
from daskdl.collective.parts import join
from daskdl.predict.measures import Measured, plain, statistics_of
from daskdl.train.job import Job
from daskdl.train.members import Gang
from daskdl.train.slices import Slice, Slots, Vector, put_together
from daskdl.train.step import Record
from daskdl.train.tables import Tables


@dataclass(frozen=True)
class Result:
    """The outcome of a group: weights and state of all members, and the iterations' records."""

    weights: Vector = field(repr=False)
    slots: Slots = field(repr=False)
    iteration: int
    records: tuple[Record, ...]

    def __sizeof__(self) -> int:
        return self.weights.nbytes + sum(slot.nbytes for slot in self.slots.values())


@dataclass(frozen=True)
class Kept:
    """A member's state at a group's end, with which it begins the next one."""

    gang: str
    iteration: int
    weights: Vector = field(repr=False)
    slots: Slots = field(repr=False)


def gathered(
    job: Job,
    gang: Gang,
    comm: Communicator,
    tables: Tables,
    kept: Kept,
    first: int,
    records: Sequence[Record],
    measured: Sequence[Measured],
    sliced_state: bool,
) -> Result | None:
    """Gather a group's outcome on the first member, which returns it; others return None.

    Parameters
    ----------
    job, gang, comm, tables :
        Of the run, its members, and what they speak by.
    kept : Kept
        This member's state at the group's end.
    first : int
        Iteration at which the group began.
    records, measured : sequences
        Of each iteration, this member's seconds, and the metrics of its shards.
    sliced_state : bool
        Whether members have their own numbers of the optimizer's state, or all of them all.
    """
    weights, slots = kept.weights, dict(kept.slots)
    sliced = [name for name, s in slots.items() if s.ndim and sliced_state]
    slices = [gang.slices(rank, tables) for rank in range(comm.size)]
    times: NDArray[np.float64] = np.array([(r.reduce, r.update, r.broadcast) for r in records])
    arrays = [slots[name] for name in sliced]
    if job.rounded:  # other members have these numbers rounded
        arrays.append(join(weights, slices[comm.rank]))
    note = [[plain(m) for m in measured], times.tobytes()]
    found = comm.gather(note, arrays, first)
    if found is None:
        return None
    parts = [
        Slice(
            own[-1] if job.rounded else join(weights, s),
            dict(zip(sliced, own, strict=False)),
        )
        for (_, own), s in zip(found, slices, strict=True)
    ]
    whole_weights, whole = put_together(parts, slices, weights.size)
    all_times = np.array([np.frombuffer(note[1]) for note, _ in found])
    all_times = all_times.reshape(len(found), *times.shape)
    # Members that are ready early wait for the last in their reduction: the shortest is that.
    shortest, longest = all_times.min(0), all_times.max(0)
    notes = [[statistics_of(one) for one in note[0]] for note, _ in found]
    tools, combined = job.tools(), []
    for i, record in enumerate(records):
        metrics = tools.values([of_one[i] for of_one in notes if of_one[i]])
        reduce, broadcast = float(shortest[i, 0]), float(shortest[i, 2])
        update = float(longest[i, 1])
        combined.append(
            replace(record, reduce=reduce, update=update, broadcast=broadcast, metrics=metrics)
        )
    return Result(whole_weights, {**slots, **whole}, kept.iteration, tuple(combined))
