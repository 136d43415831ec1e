"""Read files of torch.save, new (zip) and old, and safetensors, as arrays by name."""

from __future__ import annotations

import io
import json
import os
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from daskdl.errors import DataError
from daskdl.interop.guard import LIBRARIES, damaged, existing, reading
from daskdl.interop.torch_weights import pickles
from daskdl.interop.torch_weights.tensors import Tensors, read_safetensors
from daskdl.tensor import Array

#: First pickle of an old file.
_MAGIC = 0x1950A86A20F9469CFC6C
#: Values that nested containers may hold; more means that they contain each other.
_MOST = 1_000_000


def read(path: str | Path, prefix: str = "") -> dict[str, Array]:
    """Read weights that PyTorch saved: ``.pt``, ``.pth`` and the like, or ``.safetensors``.

    This needs no torch and runs no code from the file: it reads tensors and plain containers only,
    whatever a pickle asks for.

    Parameters
    ----------
    path : path
        For large models the ``.index.json``, which names the files that have the weights.
    prefix : str
        Return only names that begin with it, and remove it: ``"state_dict."`` for a checkpoint
        that holds the weights among other things.

    Returns
    -------
    dict of arrays, read-only
        By name; names of nested containers are joined by dots. Layouts are PyTorch's; bfloat16 and
        float8 become float32. Values other than arrays are left out.

    Raises
    ------
    DataError
        When the file is missing, damaged, of TorchScript, or holds other objects than weights.

    Examples
    --------
    ``ResNet(18).load_state_dict(read("resnet18.pth"), names="torch")``

    >>> from safetensors.numpy import save_file
    >>> save_file({"state.fc.bias": np.zeros(3, np.float32)}, "weights.safetensors")
    >>> {name: a.shape for name, a in read("weights.safetensors", prefix="state.").items()}
    {'fc.bias': (3,)}
    """
    arrays = _read(existing(path, "file of weights", DataError))
    return {name[len(prefix) :]: array for name, array in arrays.items() if name.startswith(prefix)}


def _read(path: Path) -> dict[str, Array]:
    with path.open("rb") as file:
        beginning = file.read(9)
    if path.name.endswith(".index.json"):
        return _shards(path)
    if path.suffix == ".safetensors" or beginning[8:] == b"{":
        return read_safetensors(path)
    if beginning.startswith(b"PK\x03\x04"):
        return _zip(path)
    with reading(path, "file of torch.save", DataError):
        return _old(path)


def _shards(path: Path) -> dict[str, Array]:
    """Read the files that an index names; all must be in its folder."""
    with reading(path, "index of files of weights", DataError):
        places = json.loads(path.read_bytes())["weight_map"]
        names = sorted({str(name) for name in places.values()})
    arrays: dict[str, Array] = {}
    for name in names:
        if Path(name).name != name or name.endswith(".index.json"):
            raise DataError(
                f"{path}: expected files beside it, found {name[:80]!r}; move them there"
            )
        shard = _read(existing(path.parent / name, "file of weights", DataError))
        arrays.update((key, array) for key, array in shard.items() if places.get(key) == name)
    missing = [key for key in places if key not in arrays]
    if missing:
        raise DataError(
            f"{path}: expected {missing[0]!r} in {places[missing[0]]}, which does not have it"
            "; fetch all the files of one version"
        )
    return arrays


def _zip(path: Path) -> dict[str, Array]:
    size = os.path.getsize(path)
    _check_directory(path, size)
    with reading(path, "zip file", DataError, LIBRARIES), zipfile.ZipFile(path) as archive:
        return _archive(archive, path, size)


def _archive(archive: zipfile.ZipFile, path: Path, size: int) -> dict[str, Array]:
    names = set(archive.namelist())
    roots = [name[: -len("data.pkl")] for name in names if name.endswith("/data.pkl")]
    if any(name.endswith("/constants.pkl") or "/code/" in name for name in names):
        raise DataError(
            f"{path}: it is of TorchScript, a program; torch.save(model.state_dict(), ...) writes "
            "its weights alone"
        )
    if len(roots) != 1:
        raise DataError(f"{path}: expected one data.pkl, found {len(roots)}; is it PyTorch's?")
    root, budget = roots[0], [size]

    def content(name: str) -> bytes:
        info = archive.getinfo(name)
        budget[0] -= info.file_size
        if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1 or budget[0] < 0:
            raise damaged(
                path, f"{name}: expected bytes as they are, of the file's own size", DataError
            )
        return archive.read(info)

    def bytes_of(key: str, count: int) -> bytes:
        name = f"{root}data/{key}"
        if name not in names:
            raise damaged(path, f"there is no storage {key!r} in it", DataError)
        data = content(name)
        if len(data) < count:
            raise damaged(
                path, f"storage {key!r}: expected {count} bytes, found {len(data)}", DataError
            )
        return data

    if f"{root}byteorder" in names and content(f"{root}byteorder") != b"little":
        raise DataError(
            f"{path}: it was written on a big-endian machine, which is not supported"
            "; save it again on another"
        )
    tensors = Tensors(bytes_of, str(path))
    file = io.BytesIO(content(f"{root}data.pkl"))
    return _flattened(pickles.load(file, tensors.make, tensors.storage, str(path)), str(path))


def _check_directory(path: Path, size: int) -> None:
    """Raise a DataError if a zip's directory alone would take too much memory."""
    with path.open("rb") as file:
        file.seek(max(0, size - 66_000))
        tail = file.read()
    at = tail.rfind(b"PK\x05\x06")
    length = struct.unpack("<I", tail[at + 12 : at + 16])[0] if 0 <= at <= len(tail) - 16 else 0
    if length == 0xFFFFFFFF:
        at = tail.rfind(b"PK\x06\x06")
        length = struct.unpack("<Q", tail[at + 40 : at + 48])[0] if 0 <= at <= len(tail) - 48 else 0
    if length * 13 > 2 * size + 40_000_000:
        raise DataError(f"{path}: its list of parts has {length} bytes of {size}; it is not read")


def _old(path: Path) -> dict[str, Array]:
    """Read a file of torch.save before version 1.6: pickles, then storages one by one."""
    where, file = str(path), io.BytesIO(path.read_bytes())

    def unpickled() -> Any:
        return pickles.load(file, _nothing, _nothing, where)

    start = file.read(2)
    if start[:1] != b"\x80":
        raise DataError(
            f"{where}: not a file of torch.save: it begins with {start!r}"
            "; give what torch.save wrote"
        )
    file.seek(0)
    if unpickled() != _MAGIC:
        raise DataError(
            f"{where}: not a file of torch.save, or one of before 2017; save it again by torch.save"
        )
    unpickled()
    if not (unpickled() or {}).get("little_endian", True):
        raise DataError(
            f"{where}: it was written on a big-endian machine, which is not supported"
            "; save it again on another"
        )
    place = file.tell()
    # Read the pickle once for the sizes of the storages behind it, and once with their numbers.
    sizes: dict[str, int] = {}
    data: dict[str, memoryview] = {}

    def measured(key: str, count: int) -> Any:
        if count > file.getbuffer().nbytes:
            raise damaged(
                where, f"storage {key!r} of {count} bytes goes beyond the file", DataError
            )
        sizes[key] = count
        return bytes(0)

    first = _Measuring(measured, where)
    pickles.load(file, first.make, first.storage, where)
    whole = file.getbuffer()
    for key in unpickled() or []:
        at = file.tell()
        if key not in sizes or at + 8 + sizes[key] > whole.nbytes:
            raise damaged(where, f"the file ends within storage {str(key)[:40]!r}", DataError)
        (numbers,) = struct.unpack("<q", whole[at : at + 8])
        if numbers != first.counts[key]:
            raise damaged(
                where,
                f"storage {key!r}: expected {first.counts[key]} numbers, found {numbers}",
                DataError,
            )
        data[key] = whole[at + 8 : at + 8 + sizes[key]]
        file.seek(at + 8 + sizes[key])

    def bytes_of(key: str, count: int) -> Any:
        if key not in data:
            raise damaged(where, f"there is no storage {key!r} in it", DataError)
        return data[key]

    tensors = Tensors(bytes_of, where)
    file.seek(place)
    return _flattened(pickles.load(file, tensors.make, tensors.storage, where), where)


class _Measuring(Tensors):
    """Records the sizes of storages, before their places are known."""

    def __init__(self, bytes_of: Any, where: str) -> None:
        super().__init__(bytes_of, where)
        self.counts: dict[str, int] = {}

    def _read(self, key: str, kind: str, count: int) -> Array:
        self.counts[key] = count
        self.bytes_of(key, count * (2 if kind == "bfloat16" else np.dtype(kind).itemsize))
        return np.zeros(0)

    def tensor(self, storage: Any, offset: Any, shape: Any, strides: Any) -> Array:
        """Return an empty array."""
        return np.zeros(0)


def _nothing(*arguments: Any) -> Any:
    raise DataError(f"expected plain data before the weights, found {str(arguments)[:80]}")


def _flattened(container: Any, where: str) -> dict[str, Array]:
    """Return the arrays of nested containers by their dotted names."""
    arrays: dict[str, Array] = {}
    waiting, seen = [("", container)], 0
    while waiting:
        name, value = waiting.pop()
        seen += 1
        if seen > _MOST or len(name) > 1000:
            raise DataError(f"{where}: containers hold each other more than {_MOST} times")
        if isinstance(value, np.ndarray):
            arrays[name] = value
        elif isinstance(value, (dict, list, tuple)):
            pairs = value.items() if isinstance(value, dict) else enumerate(value)
            lead = f"{name}." if name else ""
            waiting += [(f"{lead}{key}", part) for key, part in reversed(list(pairs))]
    return arrays
