"""Gang: the members of a run of groups, and which numbers of the state each of them steps."""

from __future__ import annotations

from dataclasses import dataclass

from daskdl.collective.group import Group
from daskdl.collective.parts import UNIT, slice_of
from daskdl.train.tables import Tables


@dataclass(frozen=True)
class Gang(Group):
    """A group of members, for as long as they are the same.

    Parameters
    ----------
    stays : bool
        Whether it is asked for more groups after the first.
    unit : int
        Slices of the vector begin at whole multiples of it, see
        :attr:`daskdl.optim.Method.unit`.
    """

    stays: bool = True
    unit: int = UNIT

    def slices(self, rank: int, tables: Tables) -> list[slice]:
        """Return the slices of the whole vector that a member steps, those of tables last."""
        spans = self.plan(rank).owned
        own = [slice_of(span, tables.start, self.unit) for span in spans]
        return own + tables.slices(spans)
