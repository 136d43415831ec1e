"""Read files of torch.save in Lua: numbers, texts, tables, tensors, objects; no functions."""

from __future__ import annotations

import math
import struct
from collections.abc import Generator
from pathlib import Path
from typing import Any

import numpy as np

from daskdl.errors import ModelFileError
from daskdl.interop.guard import damaged, existing
from daskdl.tensor import Array

_NIL, _NUMBER, _STRING, _TABLE, _TORCH, _BOOLEAN = range(6)
_FUNCTIONS = (6, 7, 8)
#: numpy's dtypes by kind of number; each kind has a Tensor and a Storage.
_KINDS = {
    "Float": "<f4", "Double": "<f8", "Long": "<i8", "Int": "<i4", "Short": "<i2", "Char": "|i1",
    "Byte": "|u1", "Half": "<f2", "Cuda": "<f4", "CudaDouble": "<f8", "CudaLong": "<i8",
    "CudaInt": "<i4", "CudaByte": "|u1", "CudaHalf": "<f2",
}  # fmt: skip
#: Largest number of values in a file: tables of small ones would take a multiple of its size.
_MOST = 200_000


class Object:
    """An object of a class of Torch7, such as ``nn.Linear``: its class and its fields."""

    __slots__ = ("fields", "kind")

    def __init__(self, kind: str) -> None:
        self.kind, self.fields = kind, {}  # type: str, dict[Any, Any]

    def __repr__(self) -> str:
        return f"Object({self.kind})"


def read(path: str | Path) -> Any:
    """Read a ``.t7`` of Torch7, written in its binary format on a machine of 64 bits.

    No code of the file is run. Tables become dicts, tensors become arrays on the file's bytes, and
    objects of any class become :class:`Object`. A value with several references in the file is one
    value here.

    Raises
    ------
    ModelFileError
        When the file is missing, damaged, or has functions in it.
    """
    path = existing(path, "file of Torch7")
    return from_bytes(path.read_bytes(), str(path))


def from_bytes(data: bytes, where: str) -> Any:
    """Read the bytes of a file; ``where`` names it in errors."""
    return _Reading(data, where).run()


#: Yields to ask for the next value of the file, and returns its own.
Reader = Generator[None, Any, Any]


class _Reading:
    """One pass through a file, without recursion, however deep values are nested."""

    def __init__(self, data: bytes, where: str) -> None:
        self.data, self.where, self.at, self.remaining = data, where, 0, _MOST
        self.known: dict[int, Any] = {}

    def fail(self, sentence: str) -> ModelFileError:
        return ModelFileError(f"{self.where}: {sentence}")

    def run(self) -> Any:
        stack: list[Reader] = [self.value()]
        answer: Any = None
        while stack:
            try:
                stack[-1].send(answer)
                stack.append(self.value())
                answer = None
            except StopIteration as done:
                stack.pop()
                answer = done.value
        return answer

    def unpacked(self, form: str) -> Any:
        size = struct.calcsize(form)
        if size > len(self.data) - self.at:
            raise self.fail("the file ends within a number; it is cut short, or none of Torch7")
        (number,) = struct.unpack_from(form, self.data, self.at)
        self.at += size
        return number

    def bytes(self) -> bytes:
        length = self.unpacked("<i")
        remaining = len(self.data) - self.at
        if not 0 <= length <= remaining:
            raise damaged(self.where, f"a text of {length} bytes goes beyond the {remaining} left")
        self.at += length
        return self.data[self.at - length : self.at]

    def value(self) -> Reader:
        """Read the next value."""
        self.remaining -= 1
        if self.remaining < 0:
            raise self.fail(
                f"expected up to {_MOST} values, found more; it was made to take memory"
            )
        kind = self.unpacked("<i")
        if kind == _NIL:
            return None
        if kind == _NUMBER:
            number = self.unpacked("<d")
            return int(number) if number.is_integer() and abs(number) < 1 << 53 else number
        if kind == _BOOLEAN:
            return bool(self.unpacked("<i"))
        if kind == _STRING:
            return self.bytes().decode("utf-8", "replace")
        if kind in _FUNCTIONS:
            raise self.fail(
                "it has a function in it, which is a program; save the network without it"
            )
        if kind not in (_TABLE, _TORCH):
            raise self.fail(f"found a value of unknown kind {kind}; is it a binary file of Torch7?")
        index = self.unpacked("<i")
        if index in self.known:
            return self.known[index]
        if kind == _TABLE:
            table: dict[Any, Any] = {}
            self.known[index] = table
            yield from self.table(table)
            return table
        return (yield from self.object(index))

    def table(self, table: dict[Any, Any]) -> Reader:
        count = self.unpacked("<i")
        if not 0 <= count <= (len(self.data) - self.at) // 8:
            raise damaged(self.where, f"a table of {count} pairs goes beyond the file")
        for _ in range(count):
            key = yield
            value = yield
            if isinstance(key, (str, int, float)):
                table[key] = value

    def object(self, index: int) -> Reader:
        name = self.bytes()
        if name.startswith(b"V "):
            name = self.bytes()
        kind = name.decode("utf-8", "replace")
        short = kind.removeprefix("torch.")
        if short != kind and short.removesuffix("Storage") in _KINDS and short.endswith("Storage"):
            content = self.storage(np.dtype(_KINDS[short.removesuffix("Storage")]))
            self.known[index] = content
            return content
        if short != kind and short.removesuffix("Tensor") in _KINDS and short.endswith("Tensor"):
            content = yield from self.tensor(np.dtype(_KINDS[short.removesuffix("Tensor")]))
            self.known[index] = content
            return content
        made = Object(kind)
        self.known[index] = made
        fields = yield
        made.fields = fields if isinstance(fields, dict) else {}
        return made

    def storage(self, kind: np.dtype[Any]) -> Array:
        count = self.unpacked("<q")
        size = count * kind.itemsize
        if not 0 <= size <= len(self.data) - self.at:
            remaining = len(self.data) - self.at
            raise damaged(
                self.where, f"a storage of {size} bytes goes beyond the {remaining} that are left"
            )
        self.at += size
        return np.frombuffer(self.data, kind, count, self.at - size)

    def tensor(self, kind: np.dtype[Any]) -> Generator[None, Any, Array]:
        axes = self.unpacked("<i")
        if not 0 <= axes <= 32:
            raise self.fail(f"a tensor of {axes} axes; is it a binary file of Torch7?")
        sizes = [self.unpacked("<q") for _ in range(axes)]
        strides = [self.unpacked("<q") for _ in range(axes)]
        first = self.unpacked("<q") - 1
        storage = yield
        if not axes or not isinstance(storage, np.ndarray):
            return np.zeros(0, kind.newbyteorder("="))
        if storage.dtype != kind or storage.ndim != 1:
            raise damaged(self.where, f"a tensor of {kind} has a storage of {storage.dtype}")
        last = first + sum((n - 1) * s for n, s in zip(sizes, strides, strict=True))
        if (
            min(sizes) < 0
            or (min(sizes) > 0 and (min(strides) < 0 or first < 0 or last >= storage.size))
            or math.prod(sizes) > storage.size
        ):
            raise damaged(
                self.where, f"a tensor of shape {sizes} goes beyond its {storage.size} numbers"
            )
        if min(sizes) == 0:
            return np.zeros(sizes, kind.newbyteorder("="))
        return np.lib.stride_tricks.as_strided(
            storage[first:], sizes, [s * kind.itemsize for s in strides], writeable=False
        )
