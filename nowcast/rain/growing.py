"""A netCDF file that grows along one dimension; threads compress its chunks."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import xarray as xr
from numpy.typing import NDArray

from daskdl.files import replacing
from daskdl.kernels.runtime.threads import threads
from nowcast.rain.store import DEFLATE, netcdf_encoding, without_encoding

#: A file's dataset, the start of a chunk in it, and the future of its bytes.
Chunk = tuple[Any, list[int], Future[bytes]]
#: Parts with fewer bytes are compressed while the next part is made.
OVERLAPPED = 2**28


def write_parts(parts: Iterable[xr.Dataset], path: Path, along: str) -> None:
    """Write consecutive Datasets of a dimension as one netCDF file, whole or not at all.

    HDF5 compresses in one thread, and keeps its lock meanwhile. Here each field is a chunk that a
    thread compresses, and HDF5 stores it unchanged. Parts have the same variables; each is needed
    only until the next one. Variables without the dimension come from the first part. The dimension
    is unlimited in the file.
    """
    from xarray.conventions import encode_cf_variable

    parts = iter(parts)
    first = without_encoding(next(parts))
    fields = {
        str(name): variable.dims.index(along)
        for name, variable in first.data_vars.items()
        if along in variable.dims[:-2] and variable.dtype == np.float32
    }
    others: dict[str, list[Any]] = {
        str(name): []
        for name, variable in first.variables.items()
        if along in variable.dims and name not in fields
    }
    with replacing(path) as temporary:
        first.isel({along: slice(0)}).to_netcdf(
            temporary, engine="h5netcdf", format="NETCDF4", unlimited_dims=[along],
            encoding=netcdf_encoding(first),
        )  # fmt: skip
        axes = {name: first[name].dims.index(along) for name in others}
        chunks: list[Chunk] = []
        with h5py.File(temporary, "r+") as file, ThreadPoolExecutor(threads()) as pool:
            start, everything = 0, chain([first], parts)
            del first
            for part in everything:
                part = without_encoding(part)
                end = start + part.sizes[along]
                _write(chunks)
                for name, axis in fields.items():
                    file[name].resize(end, axis)
                    for index in np.ndindex(part[name].shape[:-2]):
                        place = [*index, 0, 0]
                        place[axis] += start
                        field = pool.submit(_pack, part[name].values[index])
                        chunks.append((file[name], place, field))
                for name, each in others.items():
                    each.append(encode_cf_variable(part.variables[name]).values)
                if part.nbytes > OVERLAPPED:
                    _write(chunks)
                start = end
                del part  # before the next one is made
            _write(chunks)
            for name, each in others.items():
                file[name].resize(start, axes[name])
                file[name][...] = np.concatenate(each, axes[name])


def _write(chunks: list[Chunk]) -> None:
    """Write compressed chunks, and free them."""
    for into, place, future in chunks:
        into.id.write_direct_chunk(tuple(place), future.result())
    chunks.clear()


def _pack(field: NDArray[np.float32]) -> bytes:
    """Return the bytes of a field (y, x) after HDF5's filters shuffle and deflate."""
    planes = np.ascontiguousarray(field, "<f4").view(np.uint8).reshape(-1, 4).T
    return zlib.compress(planes.tobytes(), DEFLATE)
