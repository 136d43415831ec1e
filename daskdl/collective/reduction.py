"""Reduction: the partial sums of the canonical tree that one rank holds, in pieces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from daskdl.collective.codec import Codec, Float32
from daskdl.collective.payload import UNIT, Header, Payload, Vector, add_headers, rows_of, slice_of
from daskdl.collective.plan import WHOLE, Node, Plan, ReduceRound, Span
from daskdl.kernels.vectors.arithmetic import copy_to
from daskdl.rows import Rows

Array = NDArray[Any]
Shape = tuple[int, ...]


@dataclass
class Partial:
    """A node of the tree: its header, and where its numbers and rows lie on this rank.

    Attributes
    ----------
    header : Header, optional
        None if no shard below has samples.
    summed : bool
        Whether two sums were added here; False if one was passed on.
    pieces, rows : list
        (slice, numbers) and (span, rows of each table); they do not overlap.
    """

    header: Any
    summed: bool = False
    pieces: list[tuple[slice, Vector]] = field(default_factory=list)
    rows: list[tuple[Span, Sequence[Rows]]] = field(default_factory=list)

    def view(self, part: slice) -> Vector | None:
        """Return the numbers of ``part``; None if they are not here."""
        for piece, values in self.pieces:
            if piece.start <= part.start and part.stop <= piece.stop:
                return values[part.start - piece.start : part.stop - piece.start]
        return None

    def rows_in(self, span: Span) -> list[Rows]:
        """Return the rows of each table that belong to a span; all of them are on this rank."""
        return rows_in(self.rows, span)


class Reduction:
    """One rank's part of a sum, in memory that the next reductions use again.

    Shards put their payloads in. Along the tree each rank sends parts of its partial sums and adds
    the parts that it receives, until it has the sum over all shards of the parts that it owns. The
    additions follow the canonical tree on any number of ranks.

    Parameters
    ----------
    plan : Plan
        This rank's plan of the whole vector, or of a part of it.
    size : int
        Length of the vector.
    codec : Codec
        How numbers are sent, and rounded before they are added.
    tables : sequence of (rows, C)
        Shapes of the tables whose rows payloads contain.
    unit : int
        Parts of the vector begin at multiples of it.
    """

    def __init__(
        self,
        plan: Plan,
        size: int,
        codec: Codec | None = None,
        tables: Sequence[Shape] = (),
        unit: int = UNIT,
    ) -> None:
        self.plan, self._size, self._unit = plan, size, unit
        self._codec = codec or Float32()
        self._tables = tuple(tables)
        self._held: dict[Node, Partial] = {}
        self.owned = [self._slice(span) for span in plan.owned]
        self._received = [
            {
                peer: [np.empty(_length(self._slice(span)), np.float32) for _, span in parts]
                for peer, parts in step.receives.items()
            }
            for step in plan.reduce
        ]
        # Messages are written to the same memory, or to memory for the codec's words.
        self._words = [
            {
                peer: [
                    self._codec.room(out, self._slice(span).start)
                    for out, (_, span) in zip(received[peer], parts, strict=True)
                ]
                for peer, parts in step.receives.items()
            }
            for step, received in zip(plan.reduce, self._received, strict=True)
        ]
        self._total = np.empty(sum(map(_length, self.owned)), np.float32)

    def begin(self) -> None:
        """Forget the previous reduction."""
        self._held.clear()

    def put(self, shard: int, payload: Payload | None) -> None:
        """Take a shard's payload, None if it has no samples, and add what can be added."""
        partial = Partial(None)
        if payload is not None:
            partial.header = (list(payload.sums), list(payload.maxima), [])
            partial.pieces.append((slice(0, self._size), payload.vector))
            partial.rows.append((WHOLE, payload.rows))
        self._held[0, shard] = partial
        for left, right, result in self.plan.local:
            if result not in self._held and left in self._held and right in self._held:
                self._add(left, right, result, self.plan.span)
                for node in (left, right):
                    self._held[node].pieces.clear()
                    self._held[node].rows.clear()

    def outgoing(self, step: ReduceRound) -> dict[int, tuple[list[Header | None], list[Array]]]:
        """Return each peer's message of a round: a header for each part, and arrays."""
        return {peer: self._message(parts) for peer, parts in step.sends.items()}

    def room(self, index: int, peer: int, headers: Sequence[Any]) -> list[Array]:
        """Return the arrays into which a peer's message of a round is written, by its headers."""
        arrays: list[Array] = []
        rows: list[Rows] = []
        for header, words in zip(headers, self._words[index][peer], strict=True):
            if header is not None:
                arrays.append(words)
                rows += empty_rows(header[2], self._tables)
        self._rows[peer] = rows
        return arrays + arrays_of(rows)

    def begin_round(self) -> None:
        """Forget the rows of the previous round."""
        self._rows: dict[int, list[Rows]] = {}

    def take(self, index: int, headers: Mapping[int, Sequence[Any]]) -> None:
        """Add the messages of a round."""
        step = self.plan.reduce[index]
        for peer, parts in step.receives.items():
            rows = iter(self._rows[peer])
            for i, ((node, span), header) in enumerate(zip(parts, headers[peer], strict=True)):
                partial = self._held.setdefault(node, Partial(header))
                if header is None:
                    continue
                part, values = self._slice(span), self._received[index][peer][i]
                self._codec.decode(self._words[index][peer][i], part.start, values)
                partial.pieces.append((part, values))
                partial.rows.append((span, [next(rows) for _ in self._tables]))
        for left, right, result, span in step.adds:
            self._add(left, right, result, span)

    def total(self) -> Payload:
        """Return the sum over all shards: of the owned numbers side by side, and of owned rows.

        Raises
        ------
        ValueError
            When no shard has samples.
        """
        root = self._held[self.plan.root]
        if root.header is None:
            raise ValueError("Reduction: expected a payload of at least one shard, found none")
        whole = root.view(self.owned[0]) if len(self.owned) == 1 else None
        if whole is None:
            start = 0
            for part in self.owned:
                start = self._collect(root, part, start)
            whole = self._total
        if not root.summed:
            start = 0
            for part in self.owned:
                stop = start + _length(part)
                self._codec.round(whole[start:stop], part.start)
                start = stop
        parts = [root.rows_in(span) for span in self.plan.owned]
        rows = [Rows.joined(each) for each in zip(*parts, strict=True)]
        none = [Rows.none_of(shape) for shape in self._tables]
        return Payload(whole, tuple(rows or none), tuple(root.header[0]), tuple(root.header[1]))

    def _message(self, parts: Sequence[tuple[Node, Span]]) -> tuple[list[Header | None], list[Any]]:
        headers: list[Header | None] = []
        arrays: list[Array] = []
        rows: list[Rows] = []
        for node, span in parts:
            partial = self._held[node]
            if partial.header is None:
                headers.append(None)
                continue
            part, rows_of_span = self._slice(span), partial.rows_in(span)
            headers.append(
                (partial.header[0], partial.header[1], [len(each.ids) for each in rows_of_span])
            )
            arrays.append(self._codec.encode(self._view(node, part), part.start))
            rows += rows_of_span
        return headers, arrays + arrays_of(rows)

    def _collect(self, root: Partial, part: slice, start: int) -> int:
        """Copy the pieces of a part to their place in the total, and return its end."""
        for piece, values in root.pieces:
            if part.start <= piece.start and piece.stop <= part.stop:
                at = start + piece.start - part.start
                copy_to(self._total[at : at + _length(piece)], values)
        return start + _length(part)

    def _slice(self, span: Span) -> slice:
        return slice_of(span, self._size, self._unit)

    def _view(self, node: Node, part: slice) -> Vector:
        values = self._held[node].view(part)
        assert values is not None, f"{part} of {node} is not here"
        return values

    def _add(self, left: Node, right: Node, result: Node, span: Span) -> None:
        a, b, part = self._held[left], self._held[right], self._slice(span)
        partial = self._held.setdefault(result, Partial(add_headers(a.header, b.header)))
        if a.header is not None and b.header is not None:
            # What was received is written anew in the next reduction; either may hold the sum.
            one, other = self._view(left, part), self._view(right, part)
            self._codec.add(one, other, part.start)
            partial.summed = True
            partial.pieces.append((part, one))
            rows = zip(a.rows_in(span), b.rows_in(span), strict=True)
            partial.rows.append((span, [mine + its for mine, its in rows]))
        elif a.header is not None or b.header is not None:
            node = left if b.header is None else right
            partial.pieces.append((part, self._view(node, part)))
            partial.rows.append((span, self._held[node].rows_in(span)))


def rows_in(pieces: Sequence[tuple[Span, Sequence[Rows]]], span: Span) -> list[Rows]:
    """Return the rows of each table that belong to a span, from pieces that cover it."""
    pieces_of_tables = []
    for (start, stop), rows in sorted(pieces, key=lambda piece: piece[0]):
        both = max(start, span[0]), min(stop, span[1])
        if both[0] < both[1]:
            pieces_of_tables.append([each.part(*rows_of(both, each.shape[0])) for each in rows])
    return [Rows.joined(parts) for parts in zip(*pieces_of_tables, strict=True)]


def empty_rows(
    lengths: Sequence[int], tables: Sequence[Shape], dtype: DTypeLike = np.float32
) -> list[Rows]:
    """Return empty rows: ``lengths`` of each table."""
    return [
        Rows(np.empty(n, np.int64), np.empty((n, shape[1]), dtype), shape)
        for n, shape in zip(lengths, tables, strict=True)
    ]


def arrays_of(rows: Sequence[Rows]) -> list[Array]:
    """Return the ids and values of rows, in the order of a message."""
    return [array for each in rows for array in (each.ids, each.values)]


def _length(part: slice) -> int:
    return int(part.stop - part.start)
