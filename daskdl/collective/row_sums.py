"""RowSums: the partial sums of tables' gradients that a member of a gang holds.

They go the way of the vector's (:mod:`daskdl.collective.sums`): who is to have a part of that is to
have the same part of each table, cut at whole rows, and of these the rows that a batch has touched.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from daskdl.collective.plan import Node, Plan, Round, Span
from daskdl.rows import Rows
from daskdl.train.tables import WHOLE, Tables


@dataclass
class Pieces:
    """Rows of each table, by the parts of the vector that they belong to.

    Parameters
    ----------
    tables : Tables
    held : list of (span, rows of each table)
        No two of which meet.
    """

    tables: Tables
    held: list[tuple[Span, list[Rows]]] = field(default_factory=list)

    def part(self, span: Span) -> list[Rows]:
        """Return the rows of a part, all of which are here."""
        found = []
        for (start, stop), rows in sorted(self.held, key=lambda piece: piece[0]):
            both = max(start, span[0]), min(stop, span[1])
            if both[0] < both[1]:
                found.append(self.tables.part(rows, both))
        return [Rows.joined(parts) for parts in zip(*found, strict=True)]

    def parts(self, spans: Sequence[Span]) -> list[Rows]:
        """Return the rows of some parts one after the other, as they are sent."""
        return [rows for span in spans for rows in self.part(span)]

    def take(self, spans: Sequence[Span], rows: Sequence[Rows]) -> None:
        """Add the rows of some parts, as :meth:`parts` returned them elsewhere."""
        n = len(self.tables.names)
        for k, span in enumerate(spans):
            self.held.append((span, list(rows[k * n : (k + 1) * n])))


class RowSums:
    """What one member adds up.

    Parameters
    ----------
    plan : Plan
        The member's.
    tables : Tables
    """

    def __init__(self, plan: Plan, tables: Tables) -> None:
        self._plan, self._tables = plan, tables
        self._held: dict[Node, Pieces] = {}

    def begin(self) -> None:
        """Forget the iteration before."""
        self._held.clear()

    def put(self, shard: int, rows: Sequence[Rows] | None) -> None:
        """Take the rows of a shard, None if it has no samples, and add what can be added."""
        own = list(rows or map(Rows.none_of, self._tables.shapes))
        self._at((0, shard)).held.append((WHOLE, own))
        for left, right, result in self._plan.local:
            if result not in self._held and left in self._held and right in self._held:
                self._add(left, right, result, WHOLE)
                for node in (left, right):  # nobody asks for it
                    self._held[node].held.clear()

    def outgoing(self, step: Round) -> dict[int, list[Rows]]:
        """Return what is sent in a round to each peer."""
        return {
            peer: [rows for node, span in parts for rows in self._at(node).part(span)]
            for peer, parts in step.sends.items()
        }

    def take(self, step: Round, came: Mapping[int, Sequence[Rows]]) -> None:
        """Add what has come in a round."""
        n = len(self._tables.names)
        for peer, parts in step.receives.items():
            for k, (node, span) in enumerate(parts):
                self._at(node).take([span], came[peer][k * n : (k + 1) * n])
        for left, right, result, span in step.adds:
            self._add(left, right, result, span)

    def total(self, spans: Sequence[Span]) -> list[Rows]:
        """Return the sum over all shards for each table, of the rows of the owned parts."""
        root = self._held[self._plan.root]
        parts = [root.part(span) for span in spans]
        if not parts:
            return list(map(Rows.none_of, self._tables.shapes))
        return [Rows.joined(each) for each in zip(*parts, strict=True)]

    def _at(self, node: Node) -> Pieces:
        return self._held.setdefault(node, Pieces(self._tables))

    def _add(self, left: Node, right: Node, result: Node, span: Span) -> None:
        pairs = zip(self._at(left).part(span), self._at(right).part(span), strict=True)
        self._at(result).held.append((span, [one + other for one, other in pairs]))
