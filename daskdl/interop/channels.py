"""Graphs of programs that have channels last, on operators that have them second.

Operators of :class:`daskdl.nn.Graph` take images as (N, C, H, W), and keep them channels last in
memory. So a value is kept as (N, C, H, W) from one of them to the next, and viewed as what the file
has, (N, H, W, C), where axes matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from daskdl.interop.building import Builder, Value
from daskdl.tensor import Array


class LastBuilder(Builder):
    """A Builder whose values may have their channels second or last."""

    def second(self, value: Value) -> Value:
        """Return (N, ..., C) with its channels second."""
        if value.second or (value.rank or 4) < 3:
            return value
        rank = value.rank or 4
        name = self.transposed(value.name, (0, rank - 1, *range(1, rank - 1)))
        return Value(name, rank, True)

    def last(self, value: Value) -> Value:
        """Return a value as the file has it."""
        if not value.second:
            return value
        rank = value.rank or 4
        return Value(self.transposed(value.name, (0, *range(2, rank), 1)), rank)

    def reduced(self, x: Value, operator: str, axes: Iterable[int], keep: bool, name: str) -> Value:
        """Add a reduction over axes of the file's value."""
        rank = x.rank
        chosen = sorted(a % rank if rank else a for a in axes)
        if x.second and rank and (keep or chosen == list(range(1, rank - 1))):
            turned = tuple(1 if a == rank - 1 else a + 1 if a else 0 for a in chosen)
            found = self.node(
                operator, x.name, self.integers(*turned), name=name, keepdims=int(keep)
            )
            return Value(found, rank if keep else rank - len(chosen), keep)
        x = self.last(x)
        found = self.node(operator, x.name, self.integers(*chosen), name=name, keepdims=int(keep))
        return Value(found, rank if keep or rank is None else rank - len(chosen))

    def joined(self, values: Sequence[Value], axis: int, name: str) -> Value:
        """Add a concatenation along an axis of the file's values."""
        rank = values[0].rank
        if rank and rank > 2 and any(v.second for v in values):
            values = [self.second(v) for v in values]
            axis %= rank
            axis = 1 if axis == rank - 1 else axis + 1 if axis else 0
        else:
            values = [self.last(v) for v in values]
        return self.made(values[0], "Concat", *(v.name for v in values), axis=axis, name=name)

    def broadcast(self, a: Value, b: Value, operator: str, name: str) -> Value:
        """Add an operator of two values, of which either may have fewer axes."""
        if a.second or b.second:
            whole, other = (a, b) if a.second else (b, a)
            rank = whole.rank or 4
            if not other.second and other.rank == rank:
                other = self.second(other)
            elif not other.second and other.rank == 1:  # of channels
                behind = self.integers(*range(1, rank - 1))
                other = Value(self.node("Unsqueeze", other.name, behind), rank, True)
            if other.second or other.rank == 0:
                a, b = (whole, other) if a.second else (other, whole)
                return Value(self.node(operator, a.name, b.name, name=name), rank, True)
            a, b = self.last(a), self.last(b)
        found = self.node(operator, a.name, b.name, name=name)
        known = a.rank is not None and b.rank is not None
        return Value(found, max(a.rank or 0, b.rank or 0) if known else None)


def filters_second(kernel: Array) -> Array:
    """Return filters (..., in, out) as (out, in, ...)."""
    return np.moveaxis(kernel, (-1, -2), (0, 1))


def depthwise(kernel: Array) -> Array:
    """Return filters (..., C, multiplier) as (C * multiplier, 1, ...)."""
    channels, times = kernel.shape[-2:]
    turned = np.moveaxis(kernel, (-2, -1), (0, 1))
    return turned.reshape(channels * times, 1, *kernel.shape[:-2])
