"""TableShare: a gang member's copy of the tables, and its share of their sums and of their state.

Every member has whole tables, and of each kind of the optimizer's state its own rows: those of the
parts of the vector that it owns. In an iteration members add up the rows that their shards have
touched, each steps its own, and what became of these goes to all, who write it into their copy. So
what is computed, and sent, is what the batch has touched.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.collective.communicator import Exchange
from daskdl.collective.plan import Handing, Plan, Round
from daskdl.collective.row_sums import Pieces, RowSums
from daskdl.kernels.vectors.arithmetic import copied
from daskdl.kernels.vectors.embedding import gather
from daskdl.nn import Module
from daskdl.optim import Method
from daskdl.rows import Rows
from daskdl.train.step import Gradient
from daskdl.train.tables import WHOLE, Tables

Vector = NDArray[np.float32]
Slots = dict[str, Vector]
Sends = Mapping[int, tuple[Any, Sequence[NDArray[Any]]]]
Receives = Mapping[int, Sequence[NDArray[Any]]]


class TableShare:
    """What a member has of the tables, for one group of iterations.

    Parameters
    ----------
    model : Module
        Which is made to use the copy.
    plan : Plan
    method : Method, optional
        That steps the own rows; None if every member steps all.
    exchange : Exchange
    """

    def __init__(
        self, model: Module, plan: Plan, method: Method | None, exchange: Exchange
    ) -> None:
        self._model, self._plan, self._method = model, plan, method
        self._exchange = exchange
        self._tables = Tables.of(model)
        self._sums = RowSums(plan, self._tables)
        self._ready = Pieces(self._tables)  # what is handed on to all
        self._new = False  # whether that is rows of the tables, not of their gradients

    def begin(self, weights: Vector, slots: Slots, owned: int) -> tuple[Vector, Slots]:
        """Take the whole vector, and the own numbers of the state or all of it.

        Returns
        -------
        weights, slots
            To change in place: the whole vector, of which the model uses the tables, and of the
            state the first ``owned`` numbers, those that are not of tables; or all of it if every
            member steps all.
        """
        self.whole = copied(weights)  # what was kept, or sent, may be somebody's yet
        self._model.restore(self.whole, copy=False)
        slots = {name: copied(slot) for name, slot in slots.items()}
        if self._method is None:
            return self.whole, slots
        self._behind = {n: s[owned:] if s.ndim else s for n, s in slots.items()}
        self._own = self._tables.stretches(self.whole, self._behind, self._plan.owned)
        return self.whole, {n: s[:owned] if s.ndim else s for n, s in slots.items()}

    def end(self, vector: Vector, slots: Slots) -> tuple[Vector, Slots]:
        """Undo :meth:`begin`, where members step their own rows."""
        self.whole[: vector.size] = vector
        return self.whole, {
            name: np.concatenate([slot, self._behind[name]]) if slot.ndim else slot
            for name, slot in slots.items()
        }

    def put(self, shard: int, gradient: Gradient | None) -> None:
        """Take the rows of an own shard."""
        self._sums.put(shard, gradient.rows if gradient else None)

    def reduce(
        self, step: Round, iteration: int, kind: str, sends: Sends, receives: Receives
    ) -> dict[int, Any]:
        """Swap as :meth:`Exchange.swap` does, and beside it the rows of a round of sums."""
        expected = {peer: len(parts) for peer, parts in step.receives.items()}
        rows = self._sums.outgoing(step)
        notes, came = self._swap((iteration, kind), sends, receives, rows, expected)
        self._sums.take(step, came)
        return notes

    def step(self, iteration: int, samples: int) -> None:
        """Step the own rows, or make their gradients ready for all to step."""
        ready = self._sums.total(self._plan.owned)
        self._sums.begin()
        self._new = self._method is not None
        if self._method is not None:
            self._tables.step(self._method, self._own, ready, iteration, scale=1 / samples)
            ready = [
                replace(rows, values=gather(table, rows.ids))
                for rows, table in zip(ready, self._tables.views(self.whole), strict=True)
            ]
        self._ready = Pieces(self._tables)
        for span in self._plan.owned:
            self._ready.held.append((span, self._tables.part(ready, span)))

    def hand_on(
        self, step: Handing, iteration: int, kind: str, sends: Sends, receives: Receives
    ) -> dict[int, Any]:
        """Swap as :meth:`Exchange.swap` does, and beside it the rows that are ready."""
        expected = {peer: len(spans) for peer, spans in step.receives.items()}
        rows = {peer: self._ready.parts(spans) for peer, spans in step.sends.items()}
        notes, came = self._swap((iteration, kind), sends, receives, rows, expected)
        tables = self._tables.views(self.whole)
        for peer, spans in step.receives.items():
            self._ready.take(spans, came[peer])
            for place, each in enumerate(came[peer] if self._new else ()):
                tables[place % len(tables)][each.ids] = each.values
        return notes

    def total(self) -> tuple[Rows, ...]:
        """Return the sums over all shards of all rows, after they were handed on."""
        return tuple(self._ready.part(WHOLE))

    def _swap(
        self,
        what: tuple[int, str],
        sends: Sends,
        receives: Receives,
        rows: Mapping[int, Sequence[Rows]],
        expected: Mapping[int, int],
    ) -> tuple[dict[int, Any], dict[int, list[Rows]]]:
        """Swap arrays and with them how many rows come, and then these.

        ``expected`` says of how many parts each peer sends rows.
        """
        shapes = self._tables.shapes
        numbers = {p: np.empty(n * len(shapes), np.int64) for p, n in expected.items()}
        told = {
            peer: (_and(note), [*arrays, np.array([len(r.ids) for r in rows[peer]])])
            for peer, (note, arrays) in sends.items()
        }
        places = {peer: [*arrays, numbers[peer]] for peer, arrays in receives.items()}
        notes = self._exchange.swap(*what, told, places)
        came = {
            peer: [
                Rows(np.empty(n, np.int64), np.empty((n, shape[1]), np.float32), shape)
                for n, shape in zip(of.tolist(), shapes * expected[peer], strict=True)
            ]
            for peer, of in numbers.items()
        }
        self._exchange.swap(
            what[0],
            f"{what[1]}, rows",
            {peer: (0, _arrays(each)) for peer, each in rows.items()},
            {peer: _arrays(each) for peer, each in came.items()},
        )
        return {p: note[:-1] if isinstance(note, list) else note for p, note in notes.items()}, came


def _and(note: Any) -> Any:
    """Return a note that says of one array more that it comes."""
    return [*note, 0] if isinstance(note, list) else note


def _arrays(rows: Sequence[Rows]) -> list[NDArray[Any]]:
    return [array for each in rows for array in (each.ids, each.values)]
