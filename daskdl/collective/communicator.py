"""Communicator: reduce-scatter, all-gather, broadcast, gather and barrier of a group's ranks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from daskdl.collective.codec import Codec, Float32
from daskdl.collective.exchange import Exchange
from daskdl.collective.group import Group
from daskdl.collective.payload import Payload, rows_of, slice_of
from daskdl.collective.plan import WHOLE, Span
from daskdl.collective.reduction import Reduction, arrays_of, empty_rows, rows_in
from daskdl.collective.rendezvous import Rendezvous
from daskdl.kernels.runtime.memory import empty
from daskdl.rows import Rows

Array = NDArray[Any]


class Communicator:
    """Computes with the other ranks of a group; every rank makes the same calls.

    Sums follow one binary tree over the shards, so that they have the same bits on any number of
    ranks. Each message has the step's number, which shows a rank that is at another step.

    Parameters
    ----------
    group : Group
    rank : int
    exchange : Exchange
        With :attr:`peers`.
    """

    def __init__(self, group: Group, rank: int, exchange: Exchange) -> None:
        self.group, self.rank = group, rank
        self.plan, self._place = group.plan(rank), group.tree[rank]
        self._exchange = exchange
        self._step = 0  # of calls that are not given one

    @classmethod
    def connect(
        cls, rendezvous: Rendezvous, group: Group, run: str, attempt: int, rank: int
    ) -> Communicator:
        """Connect a rank to its peers in an attempt of a run.

        Raises
        ------
        BrokenGangError
            When a peer cannot be reached or does not come in time.
        """
        peers = group.plan(rank).peers
        addresses = {peer: group.addresses[peer] for peer in peers}
        names = {peer: group.name(peer) for peer in peers}
        who = run, attempt, rank
        exchange = Exchange.open(rendezvous, *who, addresses, names, group.patience)
        return cls(group, rank, exchange)

    @property
    def size(self) -> int:
        """Number of ranks."""
        return len(self.group.addresses)

    @property
    def shards(self) -> list[int]:
        """Shards of this rank."""
        return self.group.shards(self.rank)

    def reduce_scatter(self, reduction: Reduction, step: int, kind: str = "reduce") -> Payload:
        """Add up all shards' payloads; return the sum of the parts that this rank owns.

        Parameters
        ----------
        reduction : Reduction
            By the plan of this rank or of one of its buckets; it holds the payloads of the rank's
            shards.
        step, kind : int, str
            For messages and errors.

        Raises
        ------
        BrokenGangError
            When a peer is lost, late, or ends the attempt.
        """
        for i, round_ in enumerate(reduction.plan.reduce):
            reduction.begin_round()
            room = {peer: partial(reduction.room, i, peer) for peer in round_.receives}
            sends = reduction.outgoing(round_)
            reduction.take(i, self._exchange.swap(step, f"{kind} {i}", sends, room))
        return reduction.total()

    def all_gather(
        self,
        vector: Array,
        step: int,
        kind: str = "gather",
        codec: Codec | None = None,
        place: Callable[[Span], slice] | None = None,
        rows: Sequence[Rows] = (),
    ) -> list[Rows]:
        """Fill a vector with the parts of all ranks; each rank has its own parts already.

        Parameters
        ----------
        vector : (n,)
            Filled in place.
        step, kind : int, str
            For messages and errors.
        codec : Codec, optional
            How numbers are sent, by default unchanged; for float32 only.
        place : callable, optional
            From a span of the plan to the slice of the vector, by default :func:`slice_of`.
        rows : sequence of Rows
            Rows of tables, this rank's own parts; of one dtype, the same on every rank.

        Returns
        -------
        list of Rows
            All ranks' rows of each table.
        """
        codec, place = codec or Float32(), place or partial(slice_of, size=vector.size)
        shapes, dtype = (
            [each.shape for each in rows],
            rows[0].values.dtype if rows else np.dtype(np.float32),
        )
        rows_by_span = [
            (span, [r.part(*rows_of(span, r.shape[0])) for r in rows]) for span in self._owned
        ]
        for i, round_ in enumerate(self.plan.gather):
            came: dict[int, list[Rows]] = {}
            words: dict[int, list[Array]] = {}

            def room(
                peer: int,
                note: Any,
                spans: Mapping[int, Sequence[Span]] = round_.receives,
                came: dict[int, list[Rows]] = came,
                words: dict[int, list[Array]] = words,
            ) -> list[Array]:
                slices = map(place, spans[peer])
                words[peer] = [codec.room(vector[s], s.start) for s in slices]
                came[peer] = empty_rows(note, shapes * len(spans[peer]), dtype)
                return words[peer] + arrays_of(came[peer])

            sends = {}
            for peer, spans in round_.sends.items():
                mine = [each for span in spans for each in rows_in(rows_by_span, span)]
                coded = [codec.encode(vector[s], s.start) for s in map(place, spans)]
                sends[peer] = [len(each.ids) for each in mine], coded + arrays_of(mine)
            rooms = {peer: partial(room, peer) for peer in round_.receives}
            self._exchange.swap(step, f"{kind} {i}", sends, rooms)
            for peer, spans in round_.receives.items():
                for s, coded_part in zip(map(place, spans), words[peer], strict=True):
                    codec.decode(coded_part, s.start, vector[s])
                each = iter(came[peer])
                rows_by_span += [(span, [next(each) for _ in shapes]) for span in spans]
        return rows_in(rows_by_span, WHOLE) if shapes else []

    def all_reduce(self, arrays: Mapping[int, ArrayLike] | ArrayLike) -> Array:
        """Return the sum over all shards of an array for each, in float32.

        Parameters
        ----------
        arrays : mapping of shard to array, or an array
            One array for each shard of this rank, all of one shape; a single array belongs to the
            only shard. A shard that is left out adds nothing.

        Examples
        --------
        Inside a function that :func:`daskdl.collective.run` runs::

            total = comm.all_reduce({shard: gradient(shard) for shard in comm.shards})
        """
        if not isinstance(arrays, Mapping):
            if len(self.shards) != 1:
                raise ValueError(
                    f"all_reduce: expected an array for each shard {self.shards} of rank "
                    f"{self.rank}, found one array; pass a dict of arrays by shard"
                )
            arrays = {self.shards[0]: arrays}
        by_shard = {s: np.array(a, np.float32) for s, a in arrays.items()}
        shapes = {a.shape for a in by_shard.values()}
        if len(shapes) > 1 or not by_shard.keys() <= set(self.shards):
            raise ValueError(
                f"all_reduce: expected arrays of one shape for shards among {self.shards}, found "
                f"{ {s: a.shape for s, a in by_shard.items()} }; give one for each shard "
                "of this rank"
            )
        step, shape = self._next(), next(iter(shapes), None)
        known = self.gather(None if shape is None else list(shape), (), step)
        common = self.broadcast(next((s for s, _ in known or () if s is not None), None), step)
        if common is None:
            raise ValueError("all_reduce: expected an array of at least one shard, found none")
        vector = np.zeros(int(np.prod(common)), np.float32)
        reduction = Reduction(self.plan, vector.size)
        for shard in self.shards:
            array = by_shard.get(shard)
            reduction.put(shard, None if array is None else Payload(array.reshape(-1)))
        total, start = self.reduce_scatter(reduction, step).vector, 0
        for s in reduction.owned:
            stop = start + s.stop - s.start
            vector[s] = total[start:stop]
            start = stop
        self.all_gather(vector, step)
        return vector.reshape(common)

    def broadcast(self, note: Any, step: int | None = None) -> Any:
        """Return rank 0's note, which is plain data, on all ranks."""
        step, place = self._next(step), self._place
        if place.parent is not None:
            note = self._exchange.swap(step, "broadcast", {}, {place.parent: _nothing})[
                place.parent
            ]
        self._exchange.swap(step, "broadcast", dict.fromkeys(place.children, (note, ())), {})
        return note

    def gather(
        self, note: Any, arrays: Sequence[Array] = (), step: int | None = None
    ) -> list[tuple[Any, list[Array]]] | None:
        """Return all ranks' notes and arrays on rank 0, by rank; None on the others.

        Parameters
        ----------
        note : plain data
        arrays : sequence of (n,)
            The same number and dtypes on every rank; lengths may differ.
        step : int, optional
        """
        step, tree = self._next(step), self.group.tree
        place, dtypes = self._place, [a.dtype for a in arrays]
        # By rank below: its note and the lengths of its arrays. Arrays of one index lie side by
        # side in a message, in the order of ``below``.
        came: dict[int, list[Array]] = {}

        def room(child: int, note: Any) -> list[Array]:
            lengths = [sum(each) for each in zip(*(of for _, of in note), strict=True)]
            came[child] = [empty(n, t.type) for n, t in zip(lengths, dtypes, strict=True)]
            return came[child]

        rooms = {child: partial(room, child) for child in place.children}
        heard = self._exchange.swap(step, "gather", {}, rooms)
        notes = [[note, [len(a) for a in arrays]]]
        notes += [each for child in place.children for each in heard[child]]
        joined = [
            np.concatenate([a, *(came[child][i] for child in place.children)]) if came else a
            for i, a in enumerate(arrays)
        ]
        if place.parent is not None:
            self._exchange.swap(step, "gather", {place.parent: (notes, joined)}, {})
            return None
        parts = []
        for i, array in enumerate(joined):
            ends = np.cumsum([lengths[i] for _, lengths in notes])[:-1]
            parts.append(np.split(array, ends))
        by_rank = {
            rank: (notes[k][0], [part[k] for part in parts])
            for k, rank in enumerate(tree[self.rank].below)
        }
        return [by_rank[rank] for rank in range(self.size)]

    def barrier(self) -> None:
        """Wait until every rank has come here."""
        step = self._next()
        self.gather(None, (), step)
        self.broadcast(None, step)

    @property
    def interruptible(self) -> bool:
        """Whether :meth:`interrupt` ends another thread's wait."""
        return self._exchange.interruptible

    def interrupt(self, why: str) -> None:
        """End another thread's wait for peers by an error."""
        self._exchange.interrupt(why)

    def close(self, why: str | None = None) -> None:
        """End the attempt on this rank; peers that still wait get ``why``."""
        self._exchange.close(why)

    @property
    def _owned(self) -> list[Span]:
        return self.plan.owned

    def _next(self, step: int | None = None) -> int:
        if step is None:
            self._step, step = self._step + 1, self._step
        return step


def _nothing(note: Any) -> Sequence[Array]:
    return ()
