"""Plan: who sends which part of which partial sum to whom, so that the canonical tree is added.

A node of the tree (see :mod:`daskdl.collective.tree`) is a sum over the shards below it, and lies
in pieces with the members that hold these shards. Where two nodes are added, each piece of one
meets the piece of the other over the same numbers: one of the two members sends, the other adds.
What is added is the tree's whatever the members; they only decide where.

Positions in the vector are exact fractions, from 0 to 1: a piece of a small vector may be empty,
and its message is sent all the same, since it carries loss and counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise

from daskdl.collective.tree import fold

#: (level, first shard) of a sum of the tree.
Node = tuple[int, int]

#: (start, stop) of a part of the vector.
Span = tuple[Fraction, Fraction]

#: Who holds which part of a sum, in the order of the parts.
Layout = list[tuple[Fraction, Fraction, int]]


@dataclass
class Round:
    """What one member does after the rounds before.

    Attributes
    ----------
    sends, receives : mapping of peer to (node, span)
        One message to, and from, each peer.
    adds : list of (left, right, result, span)
        In this order, once all has come.
    """

    sends: dict[int, list[tuple[Node, Span]]] = field(default_factory=dict)
    receives: dict[int, list[tuple[Node, Span]]] = field(default_factory=dict)
    adds: list[tuple[Node, Node, Node, Span]] = field(default_factory=list)


@dataclass
class Handing:
    """A round in which members hand on parts of a vector that are ready."""

    sends: dict[int, list[Span]] = field(default_factory=dict)
    receives: dict[int, list[Span]] = field(default_factory=dict)


@dataclass(frozen=True)
class Plan:
    """What a member does in each iteration.

    Attributes
    ----------
    local : list of (left, right, result)
        Sums of its own shards, in the order of the tree.
    reduce : list of Round
        After which it has the sum over all shards of its :attr:`owned` parts.
    root : Node
        That sum.
    owned : list of Span
        The parts of the vector that it updates.
    gather : list of Handing
        After which it has the whole vector from its owners.
    """

    local: list[tuple[Node, Node, Node]]
    reduce: list[Round]
    root: Node
    owned: list[Span]
    gather: list[Handing]

    @property
    def peers(self) -> list[int]:
        """Members with which it speaks."""
        steps: list[Round | Handing] = [*self.reduce, *self.gather]
        return sorted({peer for step in steps for peer in (*step.sends, *step.receives)})


def sums(shards: int) -> tuple[list[tuple[Node, Node, Node]], Node]:
    """Return the tree's additions (left, right, result), lowest level first, and its root."""
    steps: list[tuple[Node, Node, Node]] = []

    def add(level: int, shard: int, left: Node, right: Node) -> Node:
        steps.append((left, right, (level, shard)))
        return level, shard

    top = fold([(0, s) for s in range(shards)], add)
    if len(top) == 2:
        level = 1 + max(node[0] for node in top)
        steps.append((top[0], top[1], (level, 0)))
        return steps, (level, 0)
    return steps, top[0]


def plans(owners: Sequence[int]) -> list[Plan]:
    """Return every member's plan by recursive halving, and doubling on the way back.

    At each level of the tree the members below its left and right node share the sum out among
    them: a round each way for every level, and messages to the one or two members across.

    R. Thakur, R. Rabenseifner and W. Gropp, Optimization of collective communication operations in
    MPICH (2005); here the nearest shards come first, which is the canonical tree, and their number
    need not be a power of two. A mesh, in which each sends each its part at once, moves as many
    bytes in 2 (n - 1) messages a member instead of 2 log2 n. With 4 members on two cores and 0.01,
    1 and 28 MB it took 1.5, 1.2 and 1.04 times as long through shared memory, and over TCP 0.93,
    0.95 and 0.9; with more members it has more messages, each of which costs both sides CPU.

    Parameters
    ----------
    owners : sequence of int
        The member that holds each shard; members count from 0 and each has a shard.
    """
    steps, root = sums(len(owners))
    members = range(max(owners) + 1)
    alone = _alone(owners, steps)
    whole = Fraction(0), Fraction(1)
    layouts: dict[Node, Layout] = {(0, s): [(*whole, m)] for s, m in enumerate(owners)}
    levels = sorted({result[0] for _, _, result in steps if result not in alone})
    at = {level: i for i, level in enumerate(levels)}
    reduce: list[list[Round]] = [[Round() for _ in levels] for _ in members]
    for left, right, result in steps:
        if result in alone:
            layouts[result] = [(*whole, alone[result])]
            continue

        def send(source: int, sink: int, node: Node, span: Span, i: int = at[result[0]]) -> None:
            reduce[source][i].sends.setdefault(sink, []).append((node, span))
            reduce[sink][i].receives.setdefault(source, []).append((node, span))

        layouts[result] = []
        weights = [len({m for *_, m in layouts[node]}) for node in (left, right)]
        for a, b, one, other in _meeting(layouts[left], layouts[right]):
            middle = b if one == other else a + (b - a) * Fraction(weights[0], sum(weights))
            if one != other:
                send(other, one, right, (a, middle))
                send(one, other, left, (middle, b))
            for start, stop, m in ((a, middle, one), (middle, b, other)):
                if start < stop:
                    layouts[result].append((start, stop, m))
                    reduce[m][at[result[0]]].adds.append((left, right, result, (start, stop)))
    gather = _backwards(reduce, layouts[root])
    return [
        Plan(
            [step for step in steps if alone.get(step[2]) == m],
            reduce[m],
            root,
            joined([(a, b) for a, b, holder in layouts[root] if holder == m]),
            gather[m],
        )
        for m in members
    ]


def joined(spans: Sequence[Span]) -> list[Span]:
    """Return the same parts, neighbours as one."""
    result: list[Span] = []
    for a, b in sorted(spans):
        if result and result[-1][1] == a:
            result[-1] = result[-1][0], b
        else:
            result.append((a, b))
    return result


def _alone(owners: Sequence[int], steps: Sequence[tuple[Node, Node, Node]]) -> dict[Node, int]:
    """Return the sums of which all shards lie with one member, and that member."""
    alone = {(0, s): m for s, m in enumerate(owners)}
    for left, right, result in steps:
        if left in alone and alone[left] == alone.get(right):
            alone[result] = alone[left]
    return alone


def _meeting(left: Layout, right: Layout) -> Iterator[tuple[Fraction, Fraction, int, int]]:
    """Yield the parts that have one holder on either side, with both."""
    i = j = 0
    for a, b in pairwise(sorted({p for start, stop, _ in (*left, *right) for p in (start, stop)})):
        while left[i][1] <= a:
            i += 1
        while right[j][1] <= a:
            j += 1
        yield a, b, left[i][2], right[j][2]


def _backwards(reduce: list[list[Round]], root: Layout) -> list[list[Handing]]:
    """Return the way back: who was sent a part to add to returns it, unless it is there already."""
    cuts = sorted({p for a, b, _ in root for p in (a, b)})
    place = {p: i for i, p in enumerate(cuts)}
    known = [{place[a] for a, _, holder in root if holder == m} for m in range(len(reduce))]
    gather: list[list[Handing]] = [[] for _ in reduce]
    for i in reversed(range(len(reduce[0]))):
        handings = [Handing() for _ in reduce]
        for sink, rounds in enumerate(reduce):
            for source, parts in rounds[i].sends.items():
                inside = {k for _, (a, b) in parts for k in range(place[a], place[b])} - known[sink]
                known[sink] |= inside
                spans = joined([(cuts[k], cuts[k + 1]) for k in inside])
                if spans:
                    handings[source].sends[sink] = spans
                    handings[sink].receives[source] = spans
        for m, handing in enumerate(handings):
            gather[m].append(handing)
    return gather
