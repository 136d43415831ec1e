"""Safetensors files as arrays, those of number formats that numpy does not have among them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from daskdl.errors import DataError
from daskdl.interop.guard import damaged
from daskdl.tensor import Array


def read(path: Path) -> dict[str, Array]:
    """Return the arrays of a file; bfloat16 and float8 as float32, which has all their numbers.

    A damaged file is refused, and number formats that numpy does not have.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, "numpy") as file:  # checks the header, and that no two overlap
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
    """Return numbers that numpy has no dtype for, as float32."""
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        entry = json.loads(file.read(size))[name]
        start, stop = entry["data_offsets"]
        file.seek(8 + size + start)
        return widened(file.read(stop - start), kind).reshape(entry["shape"])


def widened(data: bytes, kind: str) -> Array:
    """Return the numbers of bytes, of one of safetensors' names for them, as float32 (n,)."""
    if kind == "BF16":
        return (np.frombuffer(data, "<u2").astype("<u4") << 16).view("<f4")
    return _WIDENED[kind][np.frombuffer(data, np.uint8)]


def _small(exponent: int, bias: int, finite: bool) -> Array:
    """Return all 256 numbers of a float of 8 bits, float32.

    A ``finite`` one has no infinity, and one NaN; otherwise they are as in IEEE 754.
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
#: The numbers of formats of 8 bits (https://arxiv.org/abs/2209.05433); those of bfloat16 follow
#: from its bits.
_WIDENED = {
    "BF16": np.zeros(0, np.float32),
    "F8_E4M3": _small(4, 7, finite=True),
    "F8_E5M2": _small(5, 15, finite=False),
}
