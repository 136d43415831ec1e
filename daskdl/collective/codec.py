"""Codec: how numbers are sent between ranks: as float32, or the first of them as bfloat16.

bfloat16 halves the bytes, and costs precision: a number keeps 8 bits before each addition of the
tree, which is made in float32, and gradients are computed from weights rounded in the same way.
Each rank updates its own weights in float32. Both operands of every sum are rounded, even if they
never leave their rank: so the result has the same bits on any number of workers.

Buffers of a model, such as running means, lie behind its parameters and stay float32.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import SettingsError
from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.memory import empty
from daskdl.kernels.runtime.passes import LEAST_UNITS, UNIT, flat
from daskdl.kernels.runtime.team import over_rows
from daskdl.kernels.vectors.arithmetic import add_into

Vector = NDArray[np.float32]
Words = NDArray[np.uint16]

#: Numbers of a part below which a second thread costs more than it brings.
LEAST = LEAST_UNITS * UNIT

#: Names of the formats.
WIRES = ("float32", "bfloat16")


def check_wire(wire: str) -> None:
    """Raise a SettingsError unless there is such a format."""
    if wire not in WIRES:
        raise SettingsError(
            f"Trainer.fit, wire: expected one of {', '.join(WIRES)}, found {wire!r}; leave it "
            "out for float32"
        )


class Codec(Protocol):
    """A format of messages; ``start`` is where the numbers begin in the whole vector."""

    def room(self, out: Vector, start: int) -> NDArray[Any]:
        """Return memory for a message that :meth:`decode` turns into ``out``; maybe ``out``."""

    def encode(self, values: Vector, start: int) -> NDArray[Any]:
        """Return numbers as they are sent; maybe a view."""

    def decode(self, words: NDArray[Any], start: int, out: Vector) -> None:
        """Undo :meth:`encode`, into ``out``."""

    def round(self, values: Vector, start: int) -> None:
        """Round numbers in place as sending them does."""

    def add(self, a: Vector, b: Vector, start: int) -> None:
        """Add b to a in place, both rounded before; b may change."""


class Float32:
    """Numbers as they are."""

    def room(self, out: Vector, start: int) -> NDArray[Any]:
        """Return ``out`` itself."""
        return out

    def encode(self, values: Vector, start: int) -> NDArray[Any]:
        """Return the numbers themselves."""
        return values

    def decode(self, words: NDArray[Any], start: int, out: Vector) -> None:
        """Do nothing: ``out`` was filled."""

    def round(self, values: Vector, start: int) -> None:
        """Do nothing."""

    def add(self, a: Vector, b: Vector, start: int) -> None:
        """Add b to a in place."""
        add_into(a, b)


class BFloat16:
    """The first ``rounded`` numbers of the vector as bfloat16, those behind as float32.

    Parameters
    ----------
    rounded : int
    """

    def __init__(self, rounded: int) -> None:
        self.rounded = rounded

    def room(self, out: Vector, start: int) -> NDArray[Any]:
        """Return 16-bit words for a message."""
        return empty(encoded_size(out.size, self.rounded - start), np.uint16)

    def encode(self, values: Vector, start: int) -> NDArray[Any]:
        """Return numbers as 16-bit words."""
        return encode(values, self.rounded - start)

    def decode(self, words: NDArray[Any], start: int, out: Vector) -> None:
        """Undo :meth:`encode`, into ``out``."""
        decode(words, self.rounded - start, out)

    def round(self, values: Vector, start: int) -> None:
        """Round numbers in place."""
        round_in_place(values, self.rounded - start)

    def add(self, a: Vector, b: Vector, start: int) -> None:
        """Add b to a in place, both rounded before."""
        add_rounded(a, b, self.rounded - start)


def codec_of(rounded: int) -> Codec:
    """Return the codec that rounds the first ``rounded`` numbers; for 0 it rounds none."""
    return BFloat16(rounded) if rounded else Float32()


def encoded_size(size: int, rounded: int) -> int:
    """Return the 16-bit words of ``size`` numbers whose first ``rounded`` are bfloat16."""
    return 2 * size - max(0, min(rounded, size))


def encode(values: Vector, rounded: int) -> Words:
    """Return numbers as words: the first ``rounded`` as bfloat16, the others as they are."""
    rounded = max(0, min(rounded, values.size))
    words: Words = empty(encoded_size(values.size, rounded), np.uint16)
    over_rows(_round_to, (flat(values[:rounded]).view(np.uint32), words[:rounded]), LEAST)
    words[rounded:].view(np.uint8)[...] = values[rounded:].view(np.uint8)
    return words


def decode(words: Words, rounded: int, out: Vector) -> None:
    """Undo :func:`encode`, into ``out``."""
    rounded = max(0, min(rounded, out.size))
    over_rows(_widen, (flat(words[:rounded]), out[:rounded].view(np.uint32)), LEAST)
    out[rounded:].view(np.uint8)[...] = words[rounded:].view(np.uint8)


def round_in_place(values: Vector, rounded: int) -> None:
    """Round the first numbers to bfloat16: to the nearest, ties to even; NaN stays NaN."""
    over_rows(_round, (values[: max(0, rounded)].view(np.uint32),), LEAST)


def add_rounded(a: Vector, b: Vector, rounded: int) -> Vector:
    """Add b to a in place, and return it; the first ``rounded`` of both are rounded before."""
    rounded = max(0, min(rounded, a.size))
    over_rows(_add, (a[:rounded].view(np.uint32), b[:rounded].view(np.uint32)), LEAST)
    add_into(a[rounded:], b[rounded:])
    return a


@jit
def _nearest(u):
    """Return the float32 bits of the nearest bfloat16."""
    even = (u + np.uint32(0x7FFF) + ((u >> np.uint32(16)) & np.uint32(1))) & np.uint32(0xFFFF0000)
    quiet = (u | np.uint32(0x400000)) & np.uint32(0xFFFF0000)
    return quiet if (u & np.uint32(0x7FFFFFFF)) > np.uint32(0x7F800000) else even


@jit
def _round_to(bits, words):
    for k in range(bits.size):
        words[k] = np.uint16(_nearest(bits[k]) >> np.uint32(16))


@jit
def _round(bits):
    for k in range(bits.size):
        bits[k] = _nearest(bits[k])


@jit
def _widen(words, bits):
    for k in range(words.size):
        bits[k] = np.uint32(words[k]) << np.uint32(16)


@jit
def _add(a, b):
    # In place, and so by one name: a compiler that cannot tell two arrays apart uses no vectors.
    for k in range(a.size):
        one = np.uint32(_nearest(a[k])).view(np.float32)
        total = one + np.uint32(_nearest(b[k])).view(np.float32)
        a[k] = np.float32(total).view(np.uint32)
