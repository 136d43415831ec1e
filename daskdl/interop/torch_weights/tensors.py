"""Storages and tensors as torch's pickles name them: sizes, strides and offsets are checked."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from daskdl.errors import DataError
from daskdl.interop.torch_weights.pickles import Global
from daskdl.tensor import Array

#: Numpy's dtypes by torch's names for storages and for dtypes; bfloat16 is read as float32.
_STORAGES = {
    "BoolStorage": "?", "ByteStorage": "u1", "CharStorage": "i1", "ShortStorage": "<i2",
    "IntStorage": "<i4", "LongStorage": "<i8", "HalfStorage": "<f2", "FloatStorage": "<f4",
    "DoubleStorage": "<f8", "BFloat16Storage": "bfloat16", "ComplexFloatStorage": "<c8",
    "ComplexDoubleStorage": "<c16",
}  # fmt: skip
_REBUILD = {"_rebuild_tensor", "_rebuild_tensor_v2"}


class Tensors:
    """Stand-ins for the calls of a pickle.

    Parameters
    ----------
    bytes_of : function of (key, size in bytes)
        The bytes of a storage.
    where : str
        For error messages.
    """

    def __init__(self, bytes_of: Callable[[str, int], Any], where: str) -> None:
        self.bytes_of, self.where = bytes_of, where
        self.storages: dict[str, Array] = {}

    def storage(self, given: Any) -> Array:
        """Return the storage that a persistent id names, one-dimensional."""
        if not isinstance(given, tuple) or len(given) < 5 or given[0] != "storage":
            raise DataError(
                f"{self.where}: expected a storage, found {str(given)[:80]}; copy or save it again"
            )
        _, kind, key, _, count, *view = given
        name = kind.name if isinstance(kind, Global) and kind.module == "torch" else str(kind)
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
            raise DataError(
                f"{self.where}: expected a storage's key and size, found {str(given)[:80]}"
                "; copy or save it again"
            )
        if key not in self.storages:
            self.storages[key] = self._read(key, _STORAGES[name], count)
        return self.storages[key]

    def _read(self, key: str, kind: str, count: int) -> Array:
        brain = kind == "bfloat16"
        dtype = np.dtype("<u2" if brain else kind)
        data = self.bytes_of(key, count * dtype.itemsize)
        found = np.frombuffer(data, np.uint8 if kind == "?" else dtype, count)
        if kind == "?":
            return found != 0
        return (found.astype("<u4") << 16).view("<f4") if brain else found

    def make(self, function: Global, given: tuple[Any, ...]) -> Any:
        """Return what a call makes: tensors, parameters, ordered dicts, sizes."""
        module, name = function
        if module == "torch._utils" and name in _REBUILD and len(given) >= 4:
            return self.tensor(*given[:4])
        if module == "torch._utils" and name in (
            "_rebuild_parameter",
            "_rebuild_parameter_with_state",
        ):
            return self._array(given[0])
        if function == ("collections", "OrderedDict"):
            return dict(given[0]) if given else {}
        if function == ("torch", "Size") and len(given) == 1:
            return tuple(given[0])
        if function == ("torch", "device"):
            return ":".join(map(str, given))
        if function in (("__builtin__", "set"), ("builtins", "set")):
            return set(*given)
        raise DataError(
            f"{self.where}: it makes a {module}.{name}, which is no weights; only tensors in plain "
            "containers are read: torch.save(model.state_dict(), ...) writes such a file"
        )

    def tensor(self, storage: Any, offset: Any, shape: Any, strides: Any) -> Array:
        """Return a view of a storage."""
        flat = self._array(storage)
        numbers = (offset, *shape, *strides)
        if len(shape) != len(strides) or any(type(n) is not int or n < 0 for n in numbers):
            raise DataError(
                f"{self.where}: expected a tensor's place, found {str(numbers)[:80]}"
                "; copy or save it again"
            )
        count = math.prod(shape)
        last = offset + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
        if count and (last >= flat.size or count > flat.size or len(shape) > 32):
            raise DataError(
                f"{self.where}: a tensor of shape {shape}, strides {strides}, from {offset} on "
                f"goes beyond its storage of {flat.size} numbers"
                "; copy or save it again"
            )
        if not count:
            return np.zeros(shape, flat.dtype)
        steps = [s * flat.itemsize for s in strides]
        return np.lib.stride_tricks.as_strided(flat[offset:], shape, steps, writeable=False)

    def _array(self, value: Any) -> Array:
        if not isinstance(value, np.ndarray):
            raise DataError(
                f"{self.where}: expected a tensor, found {type(value).__name__}"
                "; copy or save it again"
            )
        return value
