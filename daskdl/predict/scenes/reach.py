"""Reach: the cells of an image that a network's results see, and the steps of equal bits.

Each operation says which places of its inputs a result sees, and the blocks of its kernel:
Winograd's tiles are four wide, and rounding depends on the place in a tile. So a window that starts
at a multiple of all steps gives the bits of the whole image, for results that see nothing outside
of the window.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

from numpy.typing import NDArray

Array = NDArray[Any]


class Reach(NamedTuple):
    """Cells along one axis that result q sees: from ``scale * q + low`` to ``scale * q + high``."""

    #: Cells of the input from one result to the next.
    scale: Fraction
    #: In cells of the input, both included.
    low: Fraction
    high: Fraction
    #: A window starts at a multiple of it, and its length differs from the whole's by a multiple.
    step: int
    #: Least cells of a window; for longer ones the length does not change the order of sums.
    least: int
    #: Length of the result.
    length: int

    @property
    def margin(self) -> int:
        """Cells that results see outside of their places, rounded up to a window's start."""
        seen = max(-self.low, self.high + 1 - self.scale, Fraction(0))
        return math.ceil(seen / self.step) * self.step

    def of(self, n: int, before: int) -> int:
        """Return the length of the result for an input of length n, not of length ``before``."""
        return int(self.length + (n - before) / self.scale)


class Field(NamedTuple):
    """The image's axes among an array's axes, with the reach along each."""

    axes: tuple[int, ...]
    reaches: tuple[Reach, ...]


class UnknownError(Exception):
    """An operation that sees more than a window, or is not known."""


class Operation(NamedTuple):
    """One operation in the pass of an image: its inputs, their fields, and the image's lengths."""

    arrays: list[Any]
    fields: list[Field | None]
    settings: dict[str, Any]
    lengths: list[int]
    exact: bool

    @property
    def first(self) -> Field:
        """Return the field of the first input."""
        if self.fields[0] is None or any(self.fields[1:]):
            raise UnknownError("whose weights are made of the image")
        return self.fields[0]

    def along(self, i: int, reach: Reach, of: tuple[Any, ...], block: int = 1) -> Reach:
        """Return a reach extended by a step's own (scale, low, high, length), in its input's cells.

        ``block`` results are computed together; the cells that any of them sees count.
        """
        scale, low, high, length = of
        scale, more = reach.scale * scale, 0
        low, high = reach.low + reach.scale * low, reach.high + reach.scale * high
        if self.exact and block > 1:
            low, high = low - scale * (block - 1), high + scale * (block - 1)
            more = block - 1
        step = math.lcm(reach.step, (scale * (more + 1)).numerator)
        # Places before the first and behind the last cell are padding, and do not count as seen.
        end = self.lengths[i] - scale * length
        return Reach(scale, min(low, Fraction(0)), max(high, end), step, reach.least, length)

    def windows(
        self, result: Array, parts: list[tuple[int, int, int]], blocks: tuple[int, ...] = ()
    ) -> Field:
        """Return the field after windows: (cells seen, stride, padding before) for each axis."""
        axes, reaches = self.first
        made = []
        for i, (axis, reach) in enumerate(zip(axes, reaches, strict=True)):
            if axis > len(parts):
                raise UnknownError("with windows over other axes than the image's")
            # The axis of samples may be one of the image's: a volume passes slice by slice.
            seen, stride, before = parts[axis - 1] if axis else (1, 1, 0)
            if (seen, stride, before) == (1, 1, 0) and (not axis or axes.count(axis) > 1):
                made.append(reach)
                continue
            self.single(axis)
            of = Fraction(stride), -before, seen - 1 - before, result.shape[axis]
            made.append(self.along(i, reach, of, blocks[axis - 1] if blocks else 1))
        return Field(axes, tuple(made))

    def single(self, axis: int) -> None:
        """Raise an error if an axis of the array joins several of the image's."""
        if self.first.axes.count(axis) > 1:
            raise UnknownError("which joins the image's axes with each other")

    def keep(self, result: Array, axes: tuple[int, ...]) -> Field:
        """Return the field with other axes of the image."""
        return Field(axes, self.first.reaches)

    def apart(self, *axes: int) -> None:
        """Raise an error if one of these axes is the image's."""
        ndim = self.arrays[0].ndim
        if {axis % ndim for axis in axes} & set(self.first.axes):
            raise UnknownError("with sums over the image's axes")


Rule = Callable[[Operation, Array], Field]
RULES: dict[Any, Rule] = {}


def rule(*operations: Any) -> Callable[[Rule], Rule]:
    """Register a rule: the cells that results of operations see."""

    def register(function: Rule) -> Rule:
        RULES.update({operation.__wrapped__: function for operation in operations})
        return function

    return register
