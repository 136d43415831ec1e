"""Plan: which part of which partial sum each rank sends to whom, along the canonical tree.

A node of the tree (see :func:`fold`) is a sum over the shards below it. The ranks
of these shards hold it in pieces. To add two nodes, each piece of one meets the piece of the other
over the same numbers: one of the two ranks sends, the other adds. The tree decides what is added,
the ranks only where.

Positions in the vector are exact fractions, from 0 to 1: a piece of a small vector may be empty,
and its message is sent all the same, since it carries loss and counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import Any, TypeVar

T = TypeVar("T")

#: (level, first shard) of a sum of the tree.
Node = tuple[int, int]

#: (start, stop) of a part of the vector.
Span = tuple[Fraction, Fraction]

#: (start, stop, rank) of each part of a sum, in the order of the parts.
Holders = list[tuple[Fraction, Fraction, int]]

#: All of a vector.
WHOLE: Span = Fraction(0), Fraction(1)


@dataclass
class ReduceRound:
    """One round of a reduction, as one rank takes part in it.

    Attributes
    ----------
    sends, receives : mapping of peer to (node, span)
        One message to, and from, each peer.
    adds : list of (left, right, result, span)
        Additions in order, after all messages have come.
    """

    sends: dict[int, list[tuple[Node, Span]]] = field(default_factory=dict)
    receives: dict[int, list[tuple[Node, Span]]] = field(default_factory=dict)
    adds: list[tuple[Node, Node, Node, Span]] = field(default_factory=list)


@dataclass
class GatherRound:
    """One round of an all-gather, as one rank takes part in it: spans by peer."""

    sends: dict[int, list[Span]] = field(default_factory=dict)
    receives: dict[int, list[Span]] = field(default_factory=dict)


@dataclass(frozen=True)
class Plan:
    """One rank's part in a reduce-scatter and in the all-gather that follows it.

    Attributes
    ----------
    local : list of (left, right, result)
        Sums of its own shards, in the order of the tree.
    reduce : list of ReduceRound
        Rounds after which the rank has the sum over all shards of its :attr:`owned` parts.
    root : Node
        The sum over all shards.
    owned : list of Span
        Parts of the vector whose sum the rank gets.
    gather : list of GatherRound
        Rounds after which the rank has the whole vector.
    span : Span
        The part of the vector that is added up.
    """

    local: list[tuple[Node, Node, Node]]
    reduce: list[ReduceRound]
    root: Node
    owned: list[Span]
    gather: list[GatherRound]
    span: Span = WHOLE

    @property
    def peers(self) -> list[int]:
        """Ranks that this rank exchanges messages with."""
        steps: list[ReduceRound | GatherRound] = [*self.reduce, *self.gather]
        return sorted({peer for step in steps for peer in (*step.sends, *step.receives)})

    def within(self, span: Span) -> Plan:
        """Return the plan that divides a part of the vector as this one divides the whole."""
        start, length = span[0], span[1] - span[0]

        def at(inner: Span) -> Span:
            return start + inner[0] * length, start + inner[1] * length

        def parts(of: Mapping[int, Sequence[tuple[Node, Span]]]) -> dict[int, Any]:
            return {peer: [(node, at(s)) for node, s in each] for peer, each in of.items()}

        reduce = [
            ReduceRound(
                parts(r.sends),
                parts(r.receives),
                [(left, right, result, at(s)) for left, right, result, s in r.adds],
            )
            for r in self.reduce
        ]
        gather = [
            GatherRound(
                {peer: list(map(at, spans)) for peer, spans in r.sends.items()},
                {peer: list(map(at, spans)) for peer, spans in r.receives.items()},
            )
            for r in self.gather
        ]
        return Plan(self.local, reduce, self.root, list(map(at, self.owned)), gather, at(self.span))

    def in_buckets(self, count: int) -> Plan:
        """Return the plan that divides ``count`` equal parts, all in the same rounds."""
        each = [self.within((Fraction(k, count), Fraction(k + 1, count))) for k in range(count)]
        reduce = [
            ReduceRound(
                _merged(r.sends for r in rounds),
                _merged(r.receives for r in rounds),
                [add for r in rounds for add in r.adds],
            )
            for rounds in zip(*(plan.reduce for plan in each), strict=True)
        ]
        gather = [
            GatherRound(_merged(r.sends for r in rounds), _merged(r.receives for r in rounds))
            for rounds in zip(*(plan.gather for plan in each), strict=True)
        ]
        owned = joined([span for plan in each for span in plan.owned])
        return Plan(self.local, reduce, self.root, owned, gather)


def _merged(parts: Iterable[Mapping[int, list[Any]]]) -> dict[int, list[Any]]:
    """Merge the lists of each peer, in their order."""
    by_peer: dict[int, list[Any]] = {}
    for each in parts:
        for peer, items in each.items():
            by_peer.setdefault(peer, []).extend(items)
    return by_peer


def additions(shards: int) -> tuple[list[tuple[Node, Node, Node]], Node]:
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
    """Return every rank's plan by recursive halving, and doubling on the way back.

    At each level of the tree the ranks below the left and the right node divide the sum among
    them: a round each way for every level, with messages to the one or two ranks across.

    R. Thakur, R. Rabenseifner and W. Gropp, Optimization of collective communication operations in
    MPICH (2005); here the nearest shards come first, which is the canonical tree, and their number
    need not be a power of two. A mesh, in which each rank sends every other its part, moves as many
    bytes in 2 (n - 1) messages a rank instead of 2 log2 n. With 4 ranks on two cores and 0.01,
    1 and 28 MB it took 1.5, 1.2 and 1.04 times as long through shared memory, and over TCP 0.93,
    0.95 and 0.9; with more ranks it has more messages, and each costs both sides CPU.

    Parameters
    ----------
    owners : sequence of int
        The rank that holds each shard; ranks count from 0 and each has a shard.
    """
    steps, root = additions(len(owners))
    ranks = range(max(owners) + 1)
    alone = _alone(owners, steps)
    whole = Fraction(0), Fraction(1)
    holders: dict[Node, Holders] = {(0, s): [(*whole, m)] for s, m in enumerate(owners)}
    levels = sorted({result[0] for _, _, result in steps if result not in alone})
    at = {level: i for i, level in enumerate(levels)}
    reduce: list[list[ReduceRound]] = [[ReduceRound() for _ in levels] for _ in ranks]
    for left, right, result in steps:
        if result in alone:
            holders[result] = [(*whole, alone[result])]
            continue

        def send(source: int, sink: int, node: Node, span: Span, i: int = at[result[0]]) -> None:
            reduce[source][i].sends.setdefault(sink, []).append((node, span))
            reduce[sink][i].receives.setdefault(source, []).append((node, span))

        holders[result] = []
        weights = [len({m for *_, m in holders[node]}) for node in (left, right)]
        for a, b, one, other in _overlaps(holders[left], holders[right]):
            middle = b if one == other else a + (b - a) * Fraction(weights[0], sum(weights))
            if one != other:
                send(other, one, right, (a, middle))
                send(one, other, left, (middle, b))
            for start, stop, m in ((a, middle, one), (middle, b, other)):
                if start < stop:
                    holders[result].append((start, stop, m))
                    reduce[m][at[result[0]]].adds.append((left, right, result, (start, stop)))
    gather = _backwards(reduce, holders[root])
    return [
        Plan(
            [step for step in steps if alone.get(step[2]) == m],
            reduce[m],
            root,
            joined([(a, b) for a, b, holder in holders[root] if holder == m]),
            gather[m],
        )
        for m in ranks
    ]


def joined(spans: Sequence[Span]) -> list[Span]:
    """Return the same parts with neighbours joined."""
    result: list[Span] = []
    for a, b in sorted(spans):
        if result and result[-1][1] == a:
            result[-1] = result[-1][0], b
        else:
            result.append((a, b))
    return result


def _alone(owners: Sequence[int], steps: Sequence[tuple[Node, Node, Node]]) -> dict[Node, int]:
    """Return the sums whose shards all belong to one rank, and that rank."""
    alone = {(0, s): m for s, m in enumerate(owners)}
    for left, right, result in steps:
        if left in alone and alone[left] == alone.get(right):
            alone[result] = alone[left]
    return alone


def _overlaps(left: Holders, right: Holders) -> Iterator[tuple[Fraction, Fraction, int, int]]:
    """Yield (start, stop, left rank, right rank) for each part with one holder on both sides."""
    i = j = 0
    for a, b in pairwise(sorted({p for start, stop, _ in (*left, *right) for p in (start, stop)})):
        while left[i][1] <= a:
            i += 1
        while right[j][1] <= a:
            j += 1
        yield a, b, left[i][2], right[j][2]


def _backwards(reduce: list[list[ReduceRound]], root: Holders) -> list[list[GatherRound]]:
    """Return the all-gather's rounds: the reduction's messages reversed, without known parts."""
    cuts = sorted({p for a, b, _ in root for p in (a, b)})
    place = {p: i for i, p in enumerate(cuts)}
    known = [{place[a] for a, _, holder in root if holder == m} for m in range(len(reduce))]
    gather: list[list[GatherRound]] = [[] for _ in reduce]
    for i in reversed(range(len(reduce[0]))):
        rounds_of = [GatherRound() for _ in reduce]
        for sink, rounds in enumerate(reduce):
            for source, parts in rounds[i].sends.items():
                inside = {k for _, (a, b) in parts for k in range(place[a], place[b])} - known[sink]
                known[sink] |= inside
                spans = joined([(cuts[k], cuts[k + 1]) for k in inside])
                if spans:
                    rounds_of[source].sends[sink] = spans
                    rounds_of[sink].receives[source] = spans
        for m, round_ in enumerate(rounds_of):
            gather[m].append(round_)
    return gather


def fold(leaves: Sequence[T | None], combine: Callable[[int, int, T, T], T]) -> list[T]:
    """Combine neighbours level by level until at most two are left.

    The shape depends only on ``len(leaves)`` and on which leaves are None, so that floating-point
    sums have the same bits on any number of workers. It is the pairing of recursive halving.

    Parameters
    ----------
    leaves : sequence
        One leaf for each shard; None if the shard has nothing to add.
    combine : callable
        ``combine(level, shard, left, right)``; ``level`` counts from 1, and ``shard`` is the first
        one below ``left``.

    Returns
    -------
    list
        The operands of the last sum, one or two; none if all leaves are None.

    Examples
    --------
    >>> fold(["a", "b", "c", None, "e"], lambda level, shard, left, right: f"({left}{right})")
    ['((ab)c)', 'e']
    """
    nodes, level = list(leaves), 0
    while len(nodes) > 2:
        level += 1
        above: list[T | None] = []
        for i in range(0, len(nodes), 2):
            left = nodes[i]
            right = nodes[i + 1] if i + 1 < len(nodes) else None
            if left is None or right is None:
                above.append(right if left is None else left)
            else:
                above.append(combine(level, i << (level - 1), left, right))
        nodes = above
    return [node for node in nodes if node is not None]
