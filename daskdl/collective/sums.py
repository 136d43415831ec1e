"""Sums: the partial sums of one iteration that a member of a gang holds, in pieces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from daskdl.collective.codec import Bits, add_rounded, decode, encode, encoded_size, round_in_place
from daskdl.collective.parts import slice_of
from daskdl.collective.plan import Node, Plan, Round, Span
from daskdl.kernels.vectors.arithmetic import add_into, copy_to
from daskdl.train.clocks import Clocks
from daskdl.train.step import Gradient

Vector = NDArray[np.float32]

#: Loss times samples, samples, and what :class:`Clocks` have; None for no samples.
Note = tuple[float, int, float, float, float, float, int] | None


@dataclass
class Partial:
    """A node of the tree: what is known of it, and where its numbers lie."""

    note: Note
    summed: bool = False  #: Whether two sums were added, not one handed on.
    pieces: list[tuple[slice, Vector]] = field(default_factory=list)

    def view(self, part: slice) -> Vector | None:
        """Return the numbers of ``part``; None if they are not here."""
        for piece, values in self.pieces:
            if piece.start <= part.start and part.stop <= piece.stop:
                return values[part.start - piece.start : part.stop - piece.start]
        return None


class Sums:
    """What one member adds up, in memory that is kept from iteration to iteration.

    A gradient that is put here becomes the place of the sum: it is changed.

    Parameters
    ----------
    plan : Plan
        The member's.
    size : int
        Of the vector.
    rounded : int
        How many of its numbers, the first, are rounded before they are added, and sent so
        (:mod:`daskdl.collective.codec`).
    """

    def __init__(self, plan: Plan, size: int, rounded: int = 0) -> None:
        self._plan, self._size, self._rounded = plan, size, rounded
        self._held: dict[Node, Partial] = {}
        self.owned = [slice_of(span, size) for span in plan.owned]
        self._received: list[dict[int, list[Vector]]] = [
            {
                peer: [np.empty(_length(self._slice(span)), np.float32) for _, span in parts]
                for peer, parts in step.receives.items()
            }
            for step in plan.reduce
        ]
        self._words = [self._room_for(step) for step in plan.reduce] if rounded else None
        self._total = np.empty(sum(map(_length, self.owned)), np.float32)

    def _slice(self, span: Span) -> slice:
        return slice_of(span, self._size)

    def _room_for(self, step: Round) -> dict[int, list[Bits]]:
        rooms: dict[int, list[Bits]] = {}
        for peer, parts in step.receives.items():
            slices = [self._slice(span) for _, span in parts]
            sizes = [encoded_size(_length(s), self._rounded - s.start) for s in slices]
            rooms[peer] = [np.empty(size, np.uint16) for size in sizes]
        return rooms

    def begin(self) -> None:
        """Forget the iteration before."""
        self._held.clear()

    def put(self, shard: int, gradient: Gradient | None) -> None:
        """Take a shard's gradient, None if it has no samples, and add what can be added."""
        partial = Partial(None)
        if gradient is not None:
            partial.note = (gradient.loss, gradient.samples, *gradient.seconds)
            partial.pieces.append((slice(0, self._size), gradient.vector))
        self._held[0, shard] = partial
        for left, right, result in self._plan.local:
            if result not in self._held and left in self._held and right in self._held:
                self._add(left, right, result, slice(0, self._size))
                for node in (left, right):
                    self._held[node].pieces.clear()

    def outgoing(self, step: Round) -> dict[int, tuple[list[Note], Sequence[Vector | Bits]]]:
        """Return the messages of a round: for each part a note, and its numbers if it has any."""
        messages: dict[int, tuple[list[Note], Sequence[Vector | Bits]]] = {}
        for peer, parts in step.sends.items():
            notes = [self._held[node].note for node, _ in parts]
            slices = [
                (node, self._slice(span))
                for (node, span), note in zip(parts, notes, strict=True)
                if note is not None
            ]
            views: list[Vector | Bits] = [self._view(node, s) for node, s in slices]
            if self._rounded:
                views = [encode(self._view(node, s), self._rounded - s.start) for node, s in slices]
            messages[peer] = notes, views
        return messages

    def room(self, index: int) -> Mapping[int, Sequence[Vector | Bits]]:
        """Return where to write what comes in a round."""
        return self._received[index] if self._words is None else self._words[index]

    def take(self, index: int, notes: dict[int, list[Note]]) -> None:
        """Add what has come in a round."""
        step = self._plan.reduce[index]
        for peer, parts in step.receives.items():
            arrays = self._received[index][peer]
            for i, ((node, span), note) in enumerate(zip(parts, notes[peer], strict=True)):
                partial = self._held.setdefault(node, Partial(note))
                if note is not None:
                    part = self._slice(span)
                    if self._words is not None:
                        words = self._words[index][peer][i]
                        decode(words, self._rounded - part.start, arrays[i])
                    partial.pieces.append((part, arrays[i]))
        for left, right, result, span in step.adds:
            self._add(left, right, result, self._slice(span))

    def total(self) -> Gradient:
        """Return the sum over all shards, of the owned numbers side by side."""
        root = self._held[self._plan.root]
        assert root.note is not None, "an iteration without samples"
        (loss, samples), clocks = root.note[:2], Clocks(*root.note[2:])
        first, *others = self.owned
        if others:
            start = 0
            for span in self._plan.owned:
                start = self._collect(root, self._slice(span), start)
            vector = self._total
        else:
            whole = root.view(first)
            if whole is None:
                self._collect(root, first, 0)
            vector = self._total if whole is None else whole
        if self._rounded and not root.summed:
            start = 0
            for part in self.owned:
                stop = start + _length(part)
                round_in_place(vector[start:stop], self._rounded - part.start)
                start = stop
        return Gradient(vector, loss, samples, clocks)

    def _collect(self, root: Partial, part: slice, start: int) -> int:
        """Copy the pieces of a part to the place of the total, and return its end."""
        for piece, values in root.pieces:
            if part.start <= piece.start and piece.stop <= part.stop:
                at = start + piece.start - part.start
                copy_to(self._total[at : at + _length(piece)], values)
        return start + _length(part)

    def _view(self, node: Node, part: slice) -> Vector:
        values = self._held[node].view(part)
        assert values is not None, f"{part} of {node} is not here"
        return values

    def _add(self, left: Node, right: Node, result: Node, part: slice) -> None:
        a, b = self._held[left], self._held[right]
        partial = self._held.setdefault(result, Partial(_sum(a.note, b.note)))
        if a.note is not None and b.note is not None:
            one, other = self._view(left, part), self._view(right, part)
            # What was received is written anew in the next iteration; either may hold the sum.
            partial.summed = True
            if self._rounded:
                add_rounded(one, other, self._rounded - part.start)
            else:
                add_into(one, other)
            partial.pieces.append((part, one))
        elif a.note is not None or b.note is not None:
            partial.pieces.append((part, self._view(left if b.note is None else right, part)))


def _sum(a: Note, b: Note) -> Note:
    if a is None or b is None:
        return b if a is None else a
    return (a[0] + b[0], a[1] + b[1], *Clocks(*a[2:]).plus(Clocks(*b[2:])))


def _length(part: slice) -> int:
    return int(part.stop - part.start)


def views(vector: Vector, spans: Sequence[Span]) -> list[Vector]:
    """Return views of parts of a vector."""
    return [vector[slice_of(span, vector.size)] for span in spans]
