"""Read Caffe's two files as plain data: protobuf's text format, and weights of a caffemodel."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np

from daskdl.errors import ModelFileError
from daskdl.interop.guard import damaged
from daskdl.interop.protobuf import BYTES, Fields, Span
from daskdl.tensor import Array

_TOKEN = re.compile(
    r"""(?P<blank>(?:[\s,;]|\#[^\n]*)+)
    |(?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    |(?P<number>[-+]?(?:0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|inf\b|nan\b)[fF]?)
    |(?P<word>[A-Za-z_][\w./]*)
    |(?P<mark>[{}<>:\[\]])""",
    re.VERBOSE,
)
_CLOSED = {"{": "}", "<": ">"}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
#: Largest depth of messages and number of fields: a network of a thousand layers has 30,000 fields.
DEEPEST, MOST = 30, 100_000


class Message:
    """One message: lists of values by field name.

    A value is a number, a :class:`str` (a quoted text, an enum's word, ``true`` or ``false``), or
    a message. The getters raise a ModelFileError when a value has another type.
    """

    __slots__ = ("asked", "fields", "where")

    def __init__(self, where: str) -> None:
        self.fields: dict[str, list[Any]] = {}
        self.asked: set[str] = set()
        self.where = where

    def values(self, name: str) -> list[Any]:
        """Return the values of a field, and record that the reader used it."""
        self.asked.add(name)
        return self.fields.get(name, [])

    def has(self, name: str) -> bool:
        """Whether the message has a field."""
        return bool(self.values(name))

    def parts(self, name: str) -> list[Message]:
        """Return the messages of a field."""
        parts = self.values(name)
        for value in parts:
            if not isinstance(value, Message):
                self._wrong(name, "{ ... }", value)
        return parts

    def part(self, name: str) -> Message:
        """Return a field's last message, or an empty one."""
        parts = self.parts(name)
        return parts[-1] if parts else Message(self.where)

    def words(self, name: str) -> list[str]:
        """Return the texts or enum words of a field."""
        words = self.values(name)
        for value in words:
            if not isinstance(value, str):
                self._wrong(name, "text", value)
        return words

    def word(self, name: str, default: str = "") -> str:
        """Return the last text or enum word of a field."""
        words = self.words(name)
        return words[-1] if words else default

    def flag(self, name: str, default: bool) -> bool:
        """Return a field as a bool."""
        word = (self.values(name) or [default])[-1]
        if word in ("true", "t", 1, True):
            return True
        if word in ("false", "f", 0, False):
            return False
        self._wrong(name, "true or false", word)

    def numbers(self, name: str) -> list[float]:
        """Return the numbers of a field."""
        numbers = self.values(name)
        for value in numbers:
            if isinstance(value, (str, Message)) or not math.isfinite(value):
                self._wrong(name, "a number", value)
        return [float(v) for v in numbers]

    def number(self, name: str, default: float = 0.0) -> float:
        """Return the last number of a field."""
        numbers = self.numbers(name)
        return numbers[-1] if numbers else default

    def integers(self, name: str, least: int = 0, most: int = 1 << 20) -> list[int]:
        """Return the whole numbers of a field, within bounds."""
        numbers = self.numbers(name)
        for value in numbers:
            if value != int(value) or not least <= value <= most:
                self._wrong(name, f"a whole number from {least} to {most}", value)
        return [int(v) for v in numbers]

    def integer(self, name: str, default: int = 0, least: int = 0, most: int = 1 << 20) -> int:
        """Return the last whole number of a field, within bounds."""
        numbers = self.integers(name, least, most)
        return numbers[-1] if numbers else default

    def _wrong(self, name: str, expected: str, actual: Any) -> NoReturn:
        shown = "{ ... }" if isinstance(actual, Message) else repr(actual)[:60]
        raise ModelFileError(
            f"{self.where}: {name}: expected {expected}, found {shown}; correct the prototxt"
        )


def parse(text: str, where: str) -> Message:
    """Parse a prototxt; ``where`` names the file in errors.

    Raises ModelFileError, with the line, for text that is not in protobuf's format, has messages
    nested more than 30 deep or more than 100,000 fields.
    """
    tokens = _Tokens(text, where)
    top = Message(where)
    stack: list[tuple[Message, str]] = [(top, "")]
    count = 0
    for kind, token in tokens:
        message, closing = stack[-1]
        if kind == "mark" and token == closing:
            stack.pop()
            continue
        if kind != "word":
            tokens.wrong("the name of a field", token)
        count += 1
        if count > MOST or len(stack) > DEEPEST:
            raise ModelFileError(
                f"{where}: more than {MOST} fields or messages nested deeper than {DEEPEST} times; "
                "it was made to take memory, or is no network"
            )
        values = message.fields.setdefault(token, [])
        mark = tokens.take(":", "{", "<")
        if mark == ":":
            mark = tokens.take("{", "<", "[")
        elif not mark:
            tokens.wrong("':' or '{' behind a name", token)
        if mark in _CLOSED:
            inner = Message(where)
            values.append(inner)
            stack.append((inner, _CLOSED[mark]))
        elif mark == "[":
            while not tokens.take("]"):
                count += 1
                if count > MOST:
                    tokens.wrong(f"at most {MOST} values", "more")
                values.append(tokens.value())
        else:
            values.append(tokens.value())
    if len(stack) > 1:
        raise ModelFileError(f"{where}: the file ends within {{ ... }}; it is cut short")
    return top


class _Tokens:
    """Iterator over the words, numbers, texts and marks of a prototxt."""

    def __init__(self, text: str, where: str) -> None:
        self.text, self.where, self.at = text, where, 0

    def __iter__(self) -> Iterator[tuple[str, str]]:
        while token := self._next():
            yield token

    def _next(self) -> tuple[str, str] | None:
        while self.at < len(self.text):
            match = _TOKEN.match(self.text, self.at)
            if match is None:
                self.wrong("a name, number, text or mark", self.text[self.at])
            self.at = match.end()
            if match.lastgroup != "blank":
                return str(match.lastgroup), match.group()
        return None

    def take(self, *marks: str) -> str:
        """Consume the next token if it is one of these marks, and return it; otherwise ""."""
        before = self.at
        token = self._next()
        if token and token[0] == "mark" and token[1] in marks:
            return token[1]
        self.at = before
        return ""

    def value(self) -> Any:
        """Return the next number, word or text."""
        kind, token = self._next() or ("", "the end of the file")
        if kind == "number":
            return self._number(token)
        if kind == "word":
            return token
        if kind != "text":
            self.wrong("a value", token)
        whole = _unquoted(token)
        while (following := self._peek()) and following[0] == "text":  # adjacent texts are one
            self._next()
            whole += _unquoted(following[1])
        return whole

    def _peek(self) -> tuple[str, str] | None:
        before = self.at
        token = self._next()
        self.at = before
        return token

    def _number(self, token: str) -> float:
        if token[:2] in ("0x", "0X") or token[1:3] in ("0x", "0X"):
            return float(int(token, 16)) if len(token) < 20 else math.inf
        return float(token.rstrip("fF") if "inf" not in token else token)

    def wrong(self, expected: str, actual: str) -> NoReturn:
        """Raise a ModelFileError with the line's number."""
        line = self.text.count("\n", 0, self.at) + 1
        raise ModelFileError(
            f"{self.where}: line {line}: expected {expected}, found {actual[:60]!r}; is it a "
            "prototxt?"
        )


def _unquoted(token: str) -> str:
    return re.sub(r"\\(.)", lambda m: _ESCAPES.get(m[1], m[1]), token[1:-1])


#: Fields of NetParameter with layers, of version 1 and 2; in a layer: the fields of name and blobs.
_LAYERS = {2: (4, 6), 100: (1, 7)}
#: Fields of BlobProto: the lengths of old files, float data, shape, double data.
_LENGTHS, _FLOATS, _SHAPE, _DOUBLES = (1, 2, 3, 4), 5, 7, 8
#: Largest number of layers in a file, and of blobs in a layer.
_MOST, _BLOBS = 100_000, 100


def read_blobs(data: bytes, where: str) -> dict[str, list[Array]]:
    """Return the blobs of each layer with weights, as views of the file's bytes.

    Raises a ModelFileError when the file is damaged, or a blob's shape and numbers do not match.
    """
    fields = Fields(data, where, _MOST * 10)
    blobs_of: dict[str, list[Array]] = {}
    layers = 0
    for number, wire, value in fields.of():
        if number not in _LAYERS or wire != BYTES:
            continue
        layers += 1
        name_field, blobs_field = _LAYERS[number]
        name, blobs = "", []
        for inner, kind, part in fields.of(value):
            if inner == name_field:
                name = fields.text(part)
            elif inner == blobs_field and kind == BYTES:
                blobs.append(part)
            if layers > _MOST or len(blobs) > _BLOBS:
                raise ModelFileError(
                    f"{where}: more than {_MOST} layers or {_BLOBS} blobs of one; it was made to "
                    "take memory, or is damaged"
                )
        if blobs:
            blobs_of[name] = [_blob(fields, blob, f"{where}: layer {name!r}") for blob in blobs]
    if not layers:
        raise ModelFileError(f"{where}: there are no layers in it; is it a caffemodel?")
    return blobs_of


def _blob(fields: Fields, message: Span, where: str) -> Array:
    lengths, shape, old = [0, 0, 0, 0], None, False
    pieces: list[Array] = []
    for number, wire, value in fields.of(message):
        if number in _LENGTHS:
            lengths[number - 1], old = fields.integers(wire, value)[0], True
        elif number == _SHAPE:
            shape = [
                n for i, kind, part in fields.of(value) if i == 1
                for n in fields.integers(kind, part)
            ]  # fmt: skip
        elif number in (_FLOATS, _DOUBLES):
            if wire != BYTES:
                raise ModelFileError(f"{where}: numbers one by one are not supported; save it anew")
            kind = np.dtype("<f4" if number == _FLOATS else "<f8")
            if (value.stop - value.start) % kind.itemsize:
                raise damaged(where, "a blob ends within a number")
            count = (value.stop - value.start) // kind.itemsize
            pieces.append(np.frombuffer(fields.data, kind, count, value.start))
    flat = (
        pieces[0] if len(pieces) == 1 else np.concatenate(pieces) if pieces else np.zeros(0, "f4")
    )
    if shape is None:
        shape = lengths if old else [flat.size]
    if any(n < 0 for n in shape) or len(shape) > 32 or math.prod(shape) != flat.size:
        raise damaged(
            where,
            f"expected {math.prod(shape)} numbers for a blob of shape {shape[:8]}, found "
            f"{flat.size}",
        )
    return flat.reshape(shape)
