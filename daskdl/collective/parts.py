"""Slices: which numbers of the flat vector a part of it is, and a member's numbers side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.collective.plan import Span
from daskdl.kernels.runtime.memory import empty
from daskdl.kernels.vectors.arithmetic import copy_to

Vector = NDArray[np.float32]

#: Numbers of which a part takes whole multiples: those of a cache line.
UNIT = 16


def slice_of(span: Span, size: int) -> slice:
    """Return the numbers of a vector of ``size`` that a part of it has; maybe none.

    Examples
    --------
    >>> from fractions import Fraction
    >>> slice_of((Fraction(1, 3), Fraction(1)), 100)
    slice(32, 100, None)
    """
    start, stop = (size if p == 1 else int(size * p) // UNIT * UNIT for p in span)
    return slice(start, stop)


def packed(vector: Vector, slices: Sequence[slice]) -> Vector:
    """Return the numbers of several slices side by side; a view if there is one slice.

    A single number, shape (), is a part of each.
    """
    if not vector.ndim:
        return vector
    if len(slices) == 1:
        return vector[slices[0]]
    return np.concatenate([vector[s] for s in slices])


def unpack(values: Vector, vector: Vector, slices: Sequence[slice]) -> None:
    """Undo :func:`packed`, into ``vector``."""
    start = 0
    for s in slices:
        stop = start + s.stop - s.start
        copy_to(vector[s], values[start:stop])
        start = stop


@dataclass(frozen=True)
class Slice:
    """A member's numbers of the weights and of each vector of the optimizer's state."""

    weights: Vector = field(repr=False)
    slots: dict[str, Vector] = field(repr=False)

    def __sizeof__(self) -> int:
        return self.weights.nbytes + sum(slot.nbytes for slot in self.slots.values())


def cut(weights: Vector, slots: dict[str, Vector], slices: Sequence[slice]) -> Slice:
    """Return a member's numbers, some as views."""
    return Slice(
        packed(weights, slices), {name: packed(slot, slices) for name, slot in slots.items()}
    )


def put_together(
    parts: Sequence[Slice], slices: Sequence[Sequence[slice]], size: int
) -> tuple[Vector, dict[str, Vector]]:
    """Return weights and state of all members' numbers."""
    weights = empty(size, np.float32)
    slots: dict[str, Any] = {
        name: empty(size, slot.dtype) if slot.ndim else slot
        for name, slot in parts[0].slots.items()
    }
    for part, own in zip(parts, slices, strict=True):
        unpack(part.weights, weights, own)
        for name, slot in part.slots.items():
            if slot.ndim:
                unpack(slot, slots[name], own)
    return weights, slots
