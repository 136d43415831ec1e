"""Rain stores: opening, checks, and writing Datasets to zarr or netCDF, whole or not at all."""

from __future__ import annotations

import json
import os
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from daskdl.errors import DaskdlError, DataError, type_and_line
from daskdl.files import address_of, replacing
from nowcast.rain.grid import RATES
from nowcast.rain.identity import CHECKSUM, OneStore, checksum, path_of


def open_rain(path: str | os.PathLike[str]) -> xr.Dataset:
    """Open and check a rain store.

    The opened frames do not change while an ingest adds scans, also late ones. If another store
    replaces this one, further reading is refused.

    Parameters
    ----------
    path : path
        A zarr store of ``nowcast ingest``, or a netCDF file (``.nc``) with the same. A store may
        also be at an address that fsspec knows, such as ``s3://bucket/rain.zarr``.

    Returns
    -------
    xarray.Dataset
        ``rain_rate (time, y, x)`` float32 in mm h-1, 0 without rain and NaN where missing, lazily
        loaded (dask), one chunk per time; ``time`` sorted and unique; ``y``, ``x`` increasing.

    Raises
    ------
    DataError
        When ``path`` does not exist, is not a rain store, or has no times or repeated ones.
    """
    dataset = open_stored(path)
    # Sorted before it is chunked, because Dask's indexing may merge chunks.
    return in_order(dataset).chunk({"time": 1})


def in_order(dataset: xr.Dataset) -> xr.Dataset:
    """Return a Dataset in the order of ``time``, without loading lazy data."""
    order = np.argsort(dataset["time"].values, kind="stable")
    if np.array_equal(order, np.arange(len(order))):
        return dataset
    return dataset.isel(time=order)


def open_stored(path: str | os.PathLike[str]) -> xr.Dataset:
    """Open and check a rain store, with its frames in the order of their arrival.

    Like :func:`open_rain`, but without Dask: data are read when indexed.
    """
    if (address := address_of(path)) is not None:
        return _open_remote(address)
    path = Path(path)
    if not path.exists():
        raise DataError(
            f"{path}: expected a rain store, found nothing there; nowcast ingest writes one"
        )
    kind = "a rain store (zarr) as nowcast ingest writes it"
    with expecting(path, kind, "make it by nowcast ingest"):
        if path.is_dir():
            # A running ingest replaces only the consolidated metadata in one step.
            store = OneStore(path, read_only=True)
            dataset = xr.open_zarr(store, consolidated=True, chunks=None)
            dataset.encoding["source"] = str(path)
        else:
            dataset = xr.open_dataset(path, engine="h5netcdf")
    check_rain(dataset, path)
    return dataset


@contextmanager
def expecting(path: Path, kind: str, advice: str) -> Iterator[None]:
    """Turn an error while a file is read into a DataError: the kind of file that was expected."""
    try:
        yield
    except DaskdlError:
        raise
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RuntimeError) as error:
        content = f"something else ({type_and_line(error)})" if path.exists() else "nothing there"
        raise DataError(f"{path}: expected {kind}, found {content}; {advice}") from error


def _open_remote(address: str) -> xr.Dataset:
    """Open and check a rain store at an address, by fsspec with its configuration."""
    import fsspec

    try:
        files = fsspec.filesystem(address.partition("://")[0])
        if not files.exists(f"{address}/zarr.json"):
            raise DataError(
                f"{address}: expected a rain store, found nothing there; copy one that nowcast "
                "ingest wrote"
            )
        dataset = xr.open_zarr(address, consolidated=True, chunks=None)
    except DataError:
        raise
    except Exception as error:  # each kind of store raises its own errors
        raise DataError(
            f"{address}: expected a rain store (zarr), found that it cannot be read "
            f"({type_and_line(error)}); give fsspec its access, such as FSSPEC_S3_ANON=true"
        ) from error
    dataset.encoding["source"] = address
    check_rain(dataset, address)
    return dataset


@contextmanager
def opened_rain(path: str | os.PathLike[str]) -> Iterator[xr.Dataset]:
    """Open a rain store for a block, like :func:`open_rain`; errors of damage name it."""
    with open_rain(path) as dataset, damage_named(path):
        yield dataset


@contextmanager
def damage_named(path: str | os.PathLike[str]) -> Iterator[None]:
    """Raise a DataError that names the store for a damaged chunk."""
    try:
        yield
    except (ValueError, RuntimeError, OSError) as error:
        if isinstance(error, DaskdlError) or not _of_a_chunk(error):
            raise
        raise DataError(
            f"{path}: expected its chunks as they were written, found a damaged one "
            f"({type_and_line(error)}); ingest into a new store"
        ) from error


def _of_a_chunk(error: BaseException) -> bool:
    """Whether an error comes from a chunk's codecs."""
    frames = traceback.walk_tb(error.__traceback__)
    return any(f.f_globals.get("__name__", "").startswith("zarr.codecs") for f, _ in frames)


def check_rain(dataset: xr.Dataset, path: object) -> None:
    """Raise a DataError, which names ``path``, for a Dataset that is no rain store."""
    rain = dataset.variables.get("rain_rate")
    if rain is None or rain.dims != ("time", "y", "x"):
        described = "no such variable" if rain is None else f"dimensions {rain.dims}"
        raise DataError(
            f"{path}: expected rain_rate (time, y, x), found {described}; make the store "
            "by nowcast ingest"
        )
    units = rain.attrs.get("units")
    if units not in RATES:
        raise DataError(
            f"{path}: expected rain_rate in mm h-1, found units {units!r}; "
            "convert it and write its units"
        )
    for name in ("time", "y", "x", "crs"):
        if name not in dataset.variables:
            raise DataError(
                f"{path}: expected a variable {name!r} of a rain store, found "
                "none; make the store by nowcast ingest"
            )
    time = dataset["time"].values
    if time.size == 0:
        raise DataError(f"{path}: expected at least one time, found none; ingest scans into it")
    if not np.issubdtype(time.dtype, np.datetime64):
        raise DataError(f"{path}: expected time as dates, found {time.dtype}")
    each, counts = np.unique(time, return_counts=True)
    if len(each) < len(time):
        i = int(np.argmax(counts))
        raise DataError(
            f"{path}: expected a frame of each time, found {counts[i]} of "
            f"{each[i].astype('datetime64[s]')}; leave one of each, or ingest the scans anew"
        )


def time_step(dataset: xr.Dataset) -> np.timedelta64:
    """Return the regular step between the times of a rain store: the most frequent difference.

    The caller handles gaps. Raises DataError if there are fewer than two times, or if less than two
    thirds of the differences are equal.
    """
    time = dataset["time"].values
    if time.size < 2:
        raise DataError(
            f"{path_of(dataset)}: expected at least two times to have a step, found {time.size}; "
            "ingest more scans into it"
        )
    steps, counts = np.unique(np.diff(time), return_counts=True)
    if 3 * counts.max() < 2 * counts.sum():
        often = steps[np.argsort(-counts, kind="stable")[:3]] / np.timedelta64(60, "s")
        raise DataError(
            f"{path_of(dataset)}: expected frames in equal steps, found steps of "
            f"{', '.join(f'{step:g}' for step in often)}{' ...' if len(steps) > 3 else ''} min, "
            "none in two thirds of the cases; only nowcast predict takes such frames as they are, "
            "else ingest them with --step, such as --step 5min"
        )
    step: np.timedelta64 = steps[np.argmax(counts)]
    return step


#: Allowed steps, in minutes, of forecasts from irregular frames.
ROUND_MINUTES = (1, 2, 2.5, 3, 5, 6, 10, 12, 15, 20, 30, 60)


def lead_step(dataset: xr.Dataset) -> np.timedelta64:
    """Return the step of a forecast's leads: `time_step`, or a round one of irregular frames."""
    try:
        return time_step(dataset)
    except DataError:
        if dataset["time"].size < 2:
            raise
    usual = float(np.median(np.diff(dataset["time"].values)) / np.timedelta64(1, "s")) / 60
    nearest = min(ROUND_MINUTES, key=lambda minutes: abs(np.log(minutes / usual)))
    return np.timedelta64(round(60 * nearest), "s").astype("timedelta64[ns]")


def write_dataset(dataset: xr.Dataset, path: str | os.PathLike[str]) -> None:
    """Write a Dataset to netCDF if ``path`` ends in ``.nc``, else to zarr; whole or not at all."""
    if is_netcdf(path):
        write_netcdf(dataset, path)
    else:
        write_zarr(dataset, path)


def is_netcdf(path: str | os.PathLike[str]) -> bool:
    """Return whether `write_dataset` writes netCDF to a path."""
    return Path(path).suffix in {".nc", ".nc4"}


def write_zarr(
    dataset: xr.Dataset, path: str | os.PathLike[str], *, encoding: dict[str, Any] | None = None
) -> None:
    """Write a Dataset to a new zarr store (format 3), then rename it over ``path``.

    Three-dimensional variables have a chunk for each index of their first dimension. Every chunk
    has a CRC32C; without it a damaged chunk might be read as other numbers.
    """
    path = Path(path)
    with replacing(path) as temporary:
        cleaned = without_encoding(dataset)
        changes, usual = encoding or {}, zarr_encoding(cleaned)
        cleaned.to_zarr(
            temporary,
            mode="w",
            zarr_format=3,
            consolidated=False,
            encoding={name: usual[name] | changes.get(name, {}) for name in usual},
        )
        consolidate(temporary)


def write_netcdf(dataset: xr.Dataset, path: str | os.PathLike[str]) -> None:
    """Write a Dataset to a new compressed netCDF-4 file, then rename it over ``path``."""
    with replacing(Path(path)) as temporary:
        cleaned = without_encoding(dataset)
        cleaned.to_netcdf(
            temporary, engine="h5netcdf", format="NETCDF4", encoding=netcdf_encoding(cleaned)
        )


#: Compression level of netCDF files; higher levels take up to twice the time for 4 % fewer bytes.
DEFLATE = 2


def netcdf_encoding(dataset: xr.Dataset) -> dict[str, Any]:
    """Return chunks and compression of a Dataset's fields for ``to_netcdf``."""
    return {
        str(name): {
            "zlib": True,
            "complevel": DEFLATE,
            "shuffle": True,
            "_FillValue": np.float32(np.nan),
            "chunksizes": (1,) * (variable.ndim - 2) + variable.shape[-2:],
        }
        for name, variable in dataset.data_vars.items()
        if variable.ndim >= 2 and variable.dtype == np.float32
    }


def zarr_encoding(dataset: xr.Dataset, quick: bool = False) -> dict[str, Any]:
    """Return chunks and compression of a Dataset's variables for ``to_zarr``.

    ``quick`` compresses fields five times as fast; files are a quarter larger.
    """
    from zarr.codecs import BloscCodec, Crc32cCodec, ZstdCodec

    encoding: dict[str, Any] = {}
    for name, variable in dataset.variables.items():
        entry: dict[str, Any] = {"compressors": (ZstdCodec(), Crc32cCodec())}
        if variable.ndim >= 2 and variable.dtype.kind == "f":
            # Byte shuffle makes the mostly empty float32 fields four times smaller than zstd alone.
            how = {"cname": "lz4", "clevel": 1} if quick else {"cname": "zstd", "clevel": 3}
            blosc = BloscCodec(**how, shuffle="shuffle")
            entry = {"compressors": (blosc, Crc32cCodec())}
            if variable.ndim >= 3:
                entry["fill_value"] = float("nan")
        if variable.ndim >= 3:
            lead = (1,) * (variable.ndim - 2)
            entry["chunks"] = lead + tuple(max(n, 1) for n in variable.shape[-2:])
        if variable.ndim >= 4:  # members and thresholds: a file per lead time, not per field
            entry["shards"] = (max(variable.shape[0], 1), *entry["chunks"][1:])
        encoding[str(name)] = entry
    return encoding


def without_encoding(dataset: xr.Dataset) -> xr.Dataset:
    """Drop the variables' storage settings; keep the coding of times and fill values."""
    names = {"units", "calendar", "dtype", "_FillValue"}
    dataset = dataset.copy()
    for variable in dataset.variables.values():
        of_time = variable.dtype.kind in "mM"
        variable.encoding = {
            key: value
            for key, value in variable.encoding.items()
            if key in names and (of_time or key == "_FillValue")
        }
    for name in dataset.coords:
        dataset[name].encoding.setdefault("_FillValue", None)
    if "history" not in dataset.attrs:
        dataset.attrs["history"] = ""
    return dataset


def consolidate(path: Path, attributes: dict[str, Any] | None = None) -> None:
    """Write the metadata of a zarr group's arrays into the group's, in one step.

    When this one file is replaced, readers see all changes together, also of global attributes.
    zarr's own function warns at each call, and threads cannot switch warnings off without
    disturbing each other.
    """
    group = json.loads((path / "zarr.json").read_text())
    members = sorted(entry.parent for entry in path.glob("*/zarr.json"))
    group["attributes"] = group.get("attributes", {}) | (attributes or {})
    group["consolidated_metadata"] = {
        "kind": "inline",
        "must_understand": False,
        "metadata": {
            member.name: json.loads((member / "zarr.json").read_text()) for member in members
        },
    }
    group["consolidated_metadata"][CHECKSUM] = checksum(group)
    with replacing(path / "zarr.json") as temporary:
        temporary.write_text(json.dumps(group, indent=1))
