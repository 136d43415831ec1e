"""Updates of a gang: each member steps its own slices, or all numbers if the method needs that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.collective.codec import codec_of
from daskdl.collective.communicator import Communicator
from daskdl.collective.payload import join, rows_of, slice_of, split
from daskdl.collective.plan import Span
from daskdl.kernels.runtime.memory import empty
from daskdl.kernels.vectors.arithmetic import copied, copy_to
from daskdl.kernels.vectors.embedding import gather
from daskdl.optim import Method
from daskdl.rows import Rows
from daskdl.train.engines import step
from daskdl.train.engines.gradient import Gradient, Stopwatch
from daskdl.train.engines.job import Job
from daskdl.train.engines.step import Record, State
from daskdl.train.engines.tables import Tables
from daskdl.train.gang.members import Gang, Slots, Vector


class _Update:
    """One member's place in the vector, and what it makes steps with."""

    def __init__(self, job: Job, gang: Gang, comm: Communicator) -> None:
        self._job, self._comm = job, comm
        self._model = job.tools().model
        self._tables, self._size = Tables.of(self._model.joined), self._model.vector.size
        self._place = partial(slice_of, size=self._size, unit=gang.unit)
        self._members = len(gang.addresses)
        self._owned = list(map(self._place, comm.plan.owned))


class SlicedUpdate(_Update):
    """Steps this member's slices, and gathers all members' new weights.

    The model's own vector has all weights, rounded if messages are. This member keeps its own
    numbers in float32 for the updates. Every member has all rows of tables, and its own part of the
    optimizer's state.
    """

    sliced = True

    def __init__(self, job: Job, gang: Gang, comm: Communicator, method: Method) -> None:
        super().__init__(job, gang, comm)
        self._method, self._codec = method, codec_of(job.rounded)
        end = self._model.flat.size  # of the parameters; behind them are buffers
        self._parameters = sum(max(0, min(s.stop, end) - s.start) for s in self._owned)
        self._starts = job.tools().optimizer.term_starts(end)

    @property
    def weights(self) -> Vector:
        """Return the weights for the next gradients: the model's own vector."""
        return self._model.vector

    def begin(self, weights: Vector, slots: Slots) -> None:
        """Take all weights, and this member's numbers of the state (tables last) and scalars."""
        end = sum(s.stop - s.start for s in self._owned)
        slots = {name: copied(slot) for name, slot in slots.items()}  # it may be somebody's yet
        self._slots = {n: s[:end] if s.ndim else s for n, s in slots.items()}
        if self._tables:
            self._whole = copied(weights)
            self._model.restore(self._whole, copy=False)
            self._behind = {n: s[end:] if s.ndim else s for n, s in slots.items()}
            spans = self._comm.plan.owned
            self._stretches = self._tables.stretches(self._whole, self._behind, spans)
        vector = self._model.vector
        copy_to(vector, weights[: self._size])
        self._weights = join(vector, self._owned)
        if self._job.rounded:
            self._weights = copied(self._weights)
            self._codec.round(vector, 0)

    def step(self, t: int, total: Gradient) -> tuple[Record, float]:
        """Make the step of iteration ``t``, given the sum over all shards of this member's numbers.

        Returns a record with the seconds of the update, and the seconds of gathering.
        """
        clock, method = Stopwatch(), self._method
        state = State(self._weights, self._slots, t)
        if method.joint:
            method = method.knowing(*self._terms(t, total))
        rows = total.rows
        if rows:
            self._tables.step(method, self._stretches, rows, t, 1 / total.samples)
            rows = tuple(
                replace(each, values=gather(table, each.ids))
                for each, table in zip(rows, self._tables.views(self._whole), strict=True)
            )
        after = step.update(
            self._job,
            state,
            replace(total, rows=()),
            method=method,
            parameters=self._parameters,
            summed=True,
            overwrite=True,
            workers=self._members,
        )
        self._weights, self._slots = after.weights, after.slots
        vector = self._model.vector
        split(self._weights, vector, self._owned)
        for s in self._owned:
            self._codec.round(vector[s], s.start)
        update = clock.lap()
        new = self._comm.all_gather(vector, t, "weights", self._codec, self._place, rows)
        for table, each in zip(self._tables.views(self._whole) if rows else (), new, strict=True):
            table[each.ids] = each.values
        return replace(after.records[0], update=update), clock.lap()

    def end(self) -> tuple[Vector, Slots]:
        """Return all weights, and this member's state; its own weights are not rounded."""
        weights = self._whole if self._tables else copied(self._model.vector)
        weights[: self._size] = self._model.vector
        split(self._weights, weights, self._owned)
        if not self._tables:
            return weights, self._slots
        return weights, {
            name: np.concatenate([slot, self._behind[name]]) if slot.ndim else slot
            for name, slot in self._slots.items()
        }

    def _terms(self, t: int, total: Gradient) -> tuple[NDArray[np.float64], list[Any]]:
        """Return the terms of the whole vector and of all rows, see :meth:`Method.terms`."""
        n = self._parameters
        slots_of = {name: s[:n] if s.ndim else s for name, s in self._slots.items()}
        put = self._weights[:n], total.vector[:n], slots_of, t, 1 / total.samples
        mine = self._method.terms(*put)
        terms = np.zeros((len(self._starts), mine.shape[1]))
        columns = mine.shape[1]

        def place(span: Span) -> slice:
            numbers = self._place(span)
            first, stop = np.searchsorted(self._starts, (numbers.start, numbers.stop))
            return slice(int(first) * columns, int(stop) * columns)

        flat = terms.reshape(-1)
        split(mine.reshape(-1), flat, [place(span) for span in self._comm.plan.owned])
        squares = [
            Rows(rows.ids, of[:, None], (rows.shape[0], 1))
            for rows, of in zip(total.rows, self._method.row_terms(total.rows), strict=True)
        ]
        gathered = self._comm.all_gather(flat, t, "terms", place=place, rows=squares)
        return terms, [rows.values[:, 0] for rows in gathered]


class WholeUpdate(_Update):
    """Gathers the gradient of all members; then each member makes the whole step.

    It is for methods that can only step the whole vector, such as LBFGS.
    """

    sliced = False

    @property
    def weights(self) -> Vector:
        """Return the weights for the next gradients; a step may have made a new vector."""
        return self._weights

    def begin(self, weights: Vector, slots: Slots) -> None:
        """Take all weights and all of the state."""
        self._weights = copied(weights)  # it may be somebody's yet
        if self._tables:
            self._model.restore(self._weights, copy=False)
        self._slots = {name: copied(slot) for name, slot in slots.items()}

    def step(self, t: int, total: Gradient) -> tuple[Record, float]:
        """Make the step of iteration ``t``, as :meth:`SlicedUpdate.step`."""
        clock = Stopwatch()
        vector: Vector = empty(self._size, np.float32)
        split(total.vector, vector, self._owned)
        rows = self._comm.all_gather(vector, t, "gradient", place=self._place, rows=total.rows)
        gathered = clock.lap()
        whole = replace(total, vector=vector, rows=tuple(rows))
        state = State(self._weights, self._slots, t)
        after = step.update(
            self._job, state, whole, summed=True, overwrite=True, workers=self._members
        )
        self._weights, self._slots = after.weights, after.slots
        return after.records[0], gathered

    def end(self) -> tuple[Vector, Slots]:
        """Return all weights and all of the state."""
        return self._weights, self._slots


def gather_all(comm: Communicator, gang: Gang, tables: Tables, part: Vector, t: int) -> Vector:
    """Return the whole vector from every member's own numbers, tables last.

    A scalar, such as a schedule's state, is returned unchanged.
    """
    if not part.ndim:
        return part
    vector: Vector = empty(tables.size, part.dtype.type)
    split(part, vector, gang.slices(comm.rank, tables))
    numbers = vector[: tables.start]
    place = partial(slice_of, size=tables.start, unit=gang.unit)
    comm.all_gather(numbers, t, "state", place=place)
    for table in tables.views(vector):
        comm.all_gather(table.reshape(-1), t, "state", place=partial(_numbers, table.shape))
    return vector


def _numbers(shape: Sequence[int], span: Span) -> slice:
    first, stop = rows_of(span, shape[0])
    return slice(first * shape[1], stop * shape[1])
