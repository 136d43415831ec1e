"""Read tensors of PyTorch's pickles and of safetensors; their sizes and places are checked."""

from __future__ import annotations

import json
import math
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from daskdl.errors import DataError
from daskdl.interop.guard import damaged
from daskdl.tensor import Array


def read_safetensors(path: Path) -> dict[str, Array]:
    """Return the arrays of a file; bfloat16 and float8 become float32, without loss.

    Damaged files and other formats that numpy does not have are refused.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, "numpy") as file:  # checks the header, and that no tensors overlap
            names = list(file.keys())
            kinds = {name: file.get_slice(name).get_dtype() for name in names}
            unknown = {n: k for n, k in kinds.items() if k not in _DTYPES and k not in _WIDENED}
            if not unknown:
                return {
                    n: _widened(path, n, kinds[n]) if kinds[n] in _WIDENED else file.get_tensor(n)
                    for n in names
                }
    except (SafetensorError, OSError, TypeError, ValueError) as error:
        raise damaged(path, f"not a safetensors file ({error})", DataError) from error
    name, kind = next(iter(unknown.items()))
    raise DataError(
        f"{path}: {name!r}: numbers of {kind} are not supported; convert them to float32 before "
        "saving"
    )


def _widened(path: Path, name: str, kind: str) -> Array:
    """Return a tensor as float32 if numpy does not have its format."""
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        entry = json.loads(file.read(size))[name]
        start, stop = entry["data_offsets"]
        file.seek(8 + size + start)
        return widened(file.read(stop - start), kind).reshape(entry["shape"])


def widened(data: bytes, kind: str) -> Array:
    """Return bytes of a format, by its name in safetensors, as float32 (n,)."""
    if kind == "BF16":
        return (np.frombuffer(data, "<u2").astype("<u4") << 16).view("<f4")
    return _WIDENED[kind][np.frombuffer(data, np.uint8)]


def _small(exponent: int, bias: int, finite: bool) -> Array:
    """Return all 256 numbers of an 8-bit float format, float32.

    A ``finite`` format has no infinity, and NaN only for all bits set; others follow IEEE 754.
    """
    bits = np.arange(256)
    mantissa = 7 - exponent
    power = bits >> mantissa & (1 << exponent) - 1
    part = (bits & (1 << mantissa) - 1) / (1 << mantissa)
    numbers = np.where(power > 0, (1 + part) * 2.0 ** (power - bias), part * 2.0 ** (1 - bias))
    if finite:
        numbers[bits & 127 == 127] = np.nan
    else:
        top = power == (1 << exponent) - 1
        numbers[top] = np.where(part[top] > 0, np.nan, np.inf)
    return np.where(bits > 127, -numbers, numbers).astype(np.float32)


_DTYPES = {
    "BOOL", "U8", "I8", "U16", "I16", "U32", "I32", "U64", "I64", "F16", "F32", "F64", "C64",
}  # fmt: skip
#: The numbers of 8-bit formats (https://arxiv.org/abs/2209.05433); bfloat16 needs no table.
_WIDENED = {
    "BF16": np.zeros(0, np.float32),
    "F8_E4M3": _small(4, 7, finite=True),
    "F8_E5M2": _small(5, 15, finite=False),
}


#: numpy's dtypes by torch's names of storages; bfloat16 is read as float32.
_STORAGES = {
    "BoolStorage": "?", "ByteStorage": "u1", "CharStorage": "i1", "ShortStorage": "<i2",
    "IntStorage": "<i4", "LongStorage": "<i8", "HalfStorage": "<f2", "FloatStorage": "<f4",
    "DoubleStorage": "<f8", "BFloat16Storage": "bfloat16", "ComplexFloatStorage": "<c8",
    "ComplexDoubleStorage": "<c16", "UntypedStorage": "u1",
}  # fmt: skip
_REBUILD = {"_rebuild_tensor", "_rebuild_tensor_v2"}
#: numpy's dtypes, or safetensors' names, of newer dtypes, whose storages hold bytes.
_UNTYPED = {
    "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2", "uint16": "<u2", "uint32": "<u4",
    "uint64": "<u8",
}  # fmt: skip
#: Numbers that an expanded tensor (stride 0) may have beyond its storage.
_EXPANDED = 10_000_000


class Tensors:
    """Stand-ins for the calls of a pickle; ``bytes_of(key, size)`` returns a storage's bytes."""

    def __init__(self, bytes_of: Callable[[str, int], Any], where: str) -> None:
        self.bytes_of, self.where = bytes_of, where
        self.storages: dict[str, Array] = {}

    def storage(self, ref: Any) -> Array:
        """Return the storage that a persistent id names, one-dimensional."""
        if not isinstance(ref, tuple) or len(ref) < 5 or ref[0] != "storage":
            raise damaged(self.where, f"expected a storage, found {str(ref)[:80]}", DataError)
        _, kind, key, _, count, *view = ref
        ours = isinstance(kind, type) and kind.__module__ in ("torch", "torch.storage")
        name = kind.__name__ if ours else str(kind)
        if name not in _STORAGES:
            raise DataError(
                f"{self.where}: numbers of {name} are not supported"
                "; convert them to float32 before saving"
            )
        if (
            type(count) is not int
            or count < 0
            or not isinstance(key, str)
            or view not in ([], [None])
        ):
            raise damaged(
                self.where, f"expected a storage's key and size, found {str(ref)[:80]}", DataError
            )
        if key not in self.storages:
            self.storages[key] = self._read(key, _STORAGES[name], count)
        return self.storages[key]

    def _read(self, key: str, kind: str, count: int) -> Array:
        if kind == "bfloat16":
            return widened(self.bytes_of(key, 2 * count)[: 2 * count], "BF16")
        dtype = np.dtype(kind)
        data = self.bytes_of(key, count * dtype.itemsize)
        numbers = np.frombuffer(data, np.uint8 if kind == "?" else dtype, count)
        return numbers != 0 if kind == "?" else numbers

    def make(self, module: str, name: str, arguments: tuple[Any, ...]) -> Any:
        """Return the result of a call: tensors, parameters, ordered dicts, sizes."""
        function = module, name
        if module == "torch._utils" and name in _REBUILD and len(arguments) >= 4:
            return self.tensor(*arguments[:4])
        if module == "torch._utils" and name == "_rebuild_tensor_v3" and len(arguments) >= 7:
            return self.tensor(self._viewed(arguments[0], arguments[6]), *arguments[1:4])
        if module == "torch._utils" and name in (
            "_rebuild_parameter",
            "_rebuild_parameter_with_state",
        ):
            return self._array(arguments[0])
        if function == ("collections", "OrderedDict"):
            return OrderedDict(*arguments)  # unlike a dict it takes attributes
        if function == ("torch", "Size") and len(arguments) == 1:
            return tuple(arguments[0])
        if function == ("torch", "device"):
            return ":".join(map(str, arguments))
        if function in (("__builtin__", "set"), ("builtins", "set")):
            return set(*arguments)
        raise DataError(
            f"{self.where}: it makes a {module}.{name}, which is no weights; only tensors in plain "
            "containers are read: torch.save(model.state_dict(), ...) writes such a file"
        )

    def _viewed(self, storage: Any, dtype: Any) -> Array:
        """Return a storage of bytes as numbers of a newer dtype."""
        name = getattr(dtype, "__name__", str(dtype))
        kind = _UNTYPED.get(name)
        if kind is None:
            raise DataError(
                f"{self.where}: numbers of {name} are not supported; "
                "convert them to float32 before saving"
            )
        storage_array = self._array(storage)
        return (
            storage_array.view(kind) if kind[0] == "<" else widened(storage_array.tobytes(), kind)
        )

    def tensor(self, storage: Any, offset: Any, shape: Any, strides: Any) -> Array:
        """Return a view of a storage."""
        flat = self._array(storage)
        numbers = (offset, *shape, *strides)
        if len(shape) != len(strides) or any(type(n) is not int or n < 0 for n in numbers):
            raise damaged(
                self.where, f"expected a tensor's place, found {str(numbers)[:80]}", DataError
            )
        count = math.prod(shape)
        last = offset + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
        most = max(flat.size, _EXPANDED if 0 in strides else 0)
        if count and (last >= flat.size or count > most or len(shape) > 32):
            raise damaged(
                self.where,
                f"a tensor of shape {shape}, strides {strides}, from {offset} on "
                f"goes beyond its storage of {flat.size} numbers",
                DataError,
            )
        if not count:
            return np.zeros(shape, flat.dtype)
        steps = [s * flat.itemsize for s in strides]
        return np.lib.stride_tricks.as_strided(flat[offset:], shape, steps, writeable=False)

    def _array(self, value: Any) -> Array:
        if not isinstance(value, np.ndarray):
            raise damaged(self.where, f"expected a tensor, found {type(value).__name__}", DataError)
        return value
