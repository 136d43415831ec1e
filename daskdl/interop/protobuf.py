"""The protobuf encoding: read a message's fields from a file's bytes; each length is checked."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

from daskdl.errors import ModelFileError
from daskdl.interop.guard import damaged

VARINT, LONG, BYTES, SHORT = 0, 1, 2, 5


class Span(NamedTuple):
    """A part of a file's bytes, from ``start`` to before ``stop``."""

    start: int
    stop: int


class Fields:
    """A file's bytes as protobuf messages, read on demand and without copies.

    Files may have up to ``most`` fields: many tiny ones would take a multiple of the file's size.
    """

    def __init__(self, data: bytes, where: str, most: int = 1_000_000) -> None:
        self.data, self.where, self.remaining = data, where, most

    def of(self, message: Span | None = None) -> Iterator[tuple[int, int, Any]]:
        """Yield (number, wire type, value) of the fields of a message, by default the whole file.

        A value is an int, four or eight bytes as :class:`bytes`, or a :class:`Span`. A length
        beyond the message and too many fields are refused.
        """
        at, end = message or (0, len(self.data))
        while at < end:
            self.remaining -= 1
            if self.remaining < 0:
                raise ModelFileError(
                    f"{self.where}: too many fields in its {len(self.data)} bytes; it was made to "
                    "take memory, or is damaged"
                )
            key, at = varint(self.data, at, end, self.where)
            number, wire = key >> 3, key & 7
            if wire == VARINT:
                value, at = varint(self.data, at, end, self.where)
                yield number, wire, value
                continue
            if wire == BYTES:
                length, at = varint(self.data, at, end, self.where)
            elif wire in (LONG, SHORT):
                length = 8 if wire == LONG else 4
            else:
                raise damaged(self.where, f"not such a file: a field of kind {wire}")
            if length > end - at:
                raise ModelFileError(
                    f"{self.where}: a part of {length} bytes goes beyond the {end - at} that are "
                    "left; the file is cut short or damaged"
                )
            yield (
                number,
                wire,
                Span(at, at + length) if wire == BYTES else self.data[at : at + length],
            )
            at += length

    def text(self, span: Any) -> str:
        """Return a field as text."""
        return self.bytes(span).decode("utf-8", "replace")

    def bytes(self, span: Any) -> bytes:
        """Return the bytes of a field; a ModelFileError for a number."""
        if not isinstance(span, Span):
            raise damaged(self.where, "damaged: expected text or bytes, found a number")
        return self.data[span.start : span.stop]

    def integers(self, wire: int, value: Any, most: int = 64) -> list[int]:
        """Return the signed integers of a field: one, or several packed ones."""
        if wire == VARINT:
            return [signed(value)]
        if wire != BYTES:
            raise damaged(self.where, "damaged: expected integers")
        numbers: list[int] = []
        at, end = value
        while at < end:
            if len(numbers) == most:
                raise damaged(self.where, f"damaged: more than {most} integers in a row")
            number, at = varint(self.data, at, end, self.where)
            numbers.append(signed(number))
        return numbers

    def number(self, wire: int, value: Any) -> float:
        """Return a float or double."""
        if wire not in (SHORT, LONG):
            raise damaged(self.where, "damaged: expected a number")
        return float(struct.unpack("<f" if wire == SHORT else "<d", value)[0])


def signed(value: int) -> int:
    """Return a varint as a signed integer of 64 bits."""
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >> 63 else value


def varint(data: bytes, at: int, end: int, where: str) -> tuple[int, int]:
    """Return an integer and the place after it."""
    value = shift = 0
    while at < end and shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
    raise damaged(where, "the file ends within a number, or is no such file")
