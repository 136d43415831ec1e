"""Tensors of ONNX files as arrays: types, sizes and places are checked before anything is read."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from daskdl.errors import ModelFileError
from daskdl.interop.guard import damaged
from daskdl.nn.operators.shapes import DTYPES, REFUSED
from daskdl.tensor import Array

_FIELDS = {
    "float32": "float_data",
    "float64": "double_data",
    "int64": "int64_data",
    "uint32": "uint64_data",
    "uint64": "uint64_data",
}


def dtype_of(number: int, where: str) -> np.dtype[Any]:
    """Return the dtype of ONNX's number for it; a ModelFileError for those that are refused."""
    if number not in DTYPES:
        raise ModelFileError(
            f"{where}: numbers of type {REFUSED.get(number, number)} are not supported; those of "
            "float32, float64, float16, integers of 8 to 64 bits and bool are"
        )
    return np.dtype(DTYPES[number])


def shape_of(tensor: Any, where: str) -> tuple[int, ...]:
    """Return a tensor's shape; a ModelFileError for negative lengths and sizes that overflow."""
    shape = tuple(tensor.dims)
    if any(n < 0 for n in shape) or math.prod(shape) >= 1 << 48 or len(shape) > 32:
        raise damaged(where, f"expected lengths of 0 or more, found {shape[:32]}")
    return shape


def to_array(tensor: Any, folder: Path | None, where: str) -> Array:
    """Return a TensorProto's numbers, float16 as float32.

    External data is read in the file's ``folder``, and nowhere else; a ModelFileError says where
    type, shape and bytes do not go together.
    """
    where = f"{where}: tensor {tensor.name!r}"
    dtype, shape = _checked(tensor, folder, where)
    if tensor.data_location == 1:
        path, offset = _place(tensor, dtype, math.prod(shape), folder, where)
        with path.open("rb") as file:
            file.seek(offset)
            flat = np.fromfile(file, dtype.newbyteorder("<"), math.prod(shape))
    elif tensor.HasField("raw_data"):
        flat = np.frombuffer(tensor.raw_data, dtype.newbyteorder("<"))
    else:
        numbers = _numbers(tensor, dtype)
        if dtype == np.float16:
            flat = np.array(numbers, np.int64).astype(np.uint16).view(np.float16)
        else:
            flat = np.array(numbers, np.int64 if dtype.kind in "ib" else None).astype(dtype)
    if dtype == np.bool_ and flat.dtype == np.bool_:
        flat = flat.view(np.uint8) != 0
    wanted = np.dtype(np.float32) if dtype == np.float16 else dtype
    return flat.reshape(shape).astype(wanted, copy=False)


def checked_shape(tensor: Any, folder: Path | None, where: str) -> tuple[int, ...]:
    """Return a tensor's shape, whose numbers are all there; arguments are those of `to_array`.

    What is made by a shape alone, before the numbers are read, would have any size that a file
    asks for.
    """
    return _checked(tensor, folder, f"{where}: tensor {tensor.name!r}")[1]


def _checked(tensor: Any, folder: Path | None, where: str) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """Return dtype and shape; a ModelFileError where there are other bytes than they need."""
    dtype, shape = dtype_of(tensor.data_type, where), shape_of(tensor, where)
    count = math.prod(shape)
    if tensor.data_location == 1:
        _place(tensor, dtype, count, folder, where)
    elif tensor.HasField("raw_data"):
        if len(tensor.raw_data) != count * dtype.itemsize:
            raise damaged(
                where,
                f"expected {count * dtype.itemsize} bytes for shape {shape} of {dtype}, "
                f"found {len(tensor.raw_data)}",
            )
    elif len(_numbers(tensor, dtype)) != count:
        raise damaged(
            where,
            f"expected {count} numbers for shape {shape}, found {len(_numbers(tensor, dtype))}",
        )
    return dtype, shape


def _numbers(tensor: Any, dtype: np.dtype[Any]) -> Any:
    return getattr(tensor, _FIELDS.get(dtype.name, "int32_data"))


def _place(
    tensor: Any, dtype: np.dtype[Any], count: int, folder: Path | None, where: str
) -> tuple[Path, int]:
    """Return the file beside the model, and where numbers begin; no path leads out of its folder.

    It has as many bytes as they need.
    """
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location = entries.get("location", "")
    if folder is None or not location:
        raise ModelFileError(
            f"{where}: its numbers are in another file, which is not given"
            "; load the model by its path, with that file beside it"
        )
    home = folder.resolve()
    path = (home / location).resolve()
    if not path.is_relative_to(home) or path == home:
        raise ModelFileError(
            f"{where}: expected a file in the model's own folder, found {location!r}"
            "; move it there, and export the model again"
        )
    try:
        offset, length = int(entries.get("offset", 0)), count * dtype.itemsize
        stated = int(entries.get("length", length))
    except ValueError:
        raise damaged(where, "expected numbers as offset and length") from None
    if not path.is_file():
        raise ModelFileError(
            f"{where}: there is no file {location!r} beside the model; copy it there"
        )
    if stated != length or offset < 0 or offset + length > path.stat().st_size:
        raise ModelFileError(
            f"{where}: expected {length} bytes at {offset} of {location!r}, which has "
            f"{path.stat().st_size}; the file says {stated}"
        )
    return path, offset
