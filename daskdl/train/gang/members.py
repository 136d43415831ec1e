"""Gang: its members, and the numbers of weights and state that each one steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.collective.group import Group
from daskdl.collective.payload import UNIT, join, slice_of, split
from daskdl.kernels.runtime.memory import empty
from daskdl.train.engines.tables import Tables

Vector = NDArray[np.float32]
Slots = dict[str, Vector]


@dataclass(frozen=True)
class Slice:
    """A member's numbers of the weights and of each vector of the optimizer's state."""

    weights: Vector = field(repr=False)
    slots: Slots = field(repr=False)

    def __sizeof__(self) -> int:
        return self.weights.nbytes + sum(slot.nbytes for slot in self.slots.values())


def cut(weights: Vector, slots: Slots, slices: Sequence[slice]) -> Slice:
    """Return a member's numbers, some as views."""
    return Slice(join(weights, slices), {name: join(slot, slices) for name, slot in slots.items()})


def put_together(
    parts: Sequence[Slice], slices: Sequence[Sequence[slice]], size: int
) -> tuple[Vector, Slots]:
    """Join all members' numbers to weights and state."""
    weights = empty(size, np.float32)
    slots: dict[str, Any] = {
        name: empty(size, slot.dtype) if slot.ndim else slot
        for name, slot in parts[0].slots.items()
    }
    for part, slice_of_member in zip(parts, slices, strict=True):
        split(part.weights, weights, slice_of_member)
        for name, slot in part.slots.items():
            if slot.ndim:
                split(slot, slots[name], slice_of_member)
    return weights, slots


@dataclass(frozen=True)
class Gang(Group):
    """A group of members; another set of members is another gang.

    ``stays``: whether there can be more groups after the first. Slices of the vector begin at
    multiples of ``unit``, see :attr:`daskdl.optim.Method.unit`.
    """

    stays: bool = True
    unit: int = UNIT

    def slices(self, rank: int, tables: Tables) -> list[slice]:
        """Return the slices of the whole vector that a member steps, tables last."""
        spans = self.plan(rank).owned
        slices = [slice_of(span, tables.start, self.unit) for span in spans]
        return slices + tables.slices(spans)
