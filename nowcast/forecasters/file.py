"""Forecast files: checks before they are opened and before they are replaced, and writing."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from pathlib import Path

import xarray as xr

from daskdl.errors import DataError, SettingsError
from daskdl.files import replacing
from nowcast.rain.growing import write_parts
from nowcast.rain.store import (
    consolidate,
    expecting,
    is_netcdf,
    open_rain,
    without_encoding,
    write_zarr,
    zarr_encoding,
)


def open_forecast(path: Path) -> xr.Dataset:
    """Open a forecast that ``nowcast predict`` wrote, zarr or netCDF.

    - returns: ``rain_rate (lead_time, y, x)`` in mm h-1, with ``forecast_reference_time`` and the
      valid ``time`` of each lead time.
    - raises DataError when there is nothing, or something else.
    """
    with expecting(path, "a forecast as nowcast predict writes it", "make it by nowcast predict"):
        if path.is_dir():
            dataset = xr.open_zarr(path, consolidated=True, decode_timedelta=True)
        else:
            dataset = xr.open_dataset(path, engine="h5netcdf", decode_timedelta=True)
    other_kind = _found_instead(dataset)
    if other_kind:
        dataset.close()
        raise DataError(
            f"{path}: expected a forecast, rain_rate (lead_time, y, x), found {other_kind}; use a "
            "file that nowcast predict wrote"
        )
    return dataset


def open_fields(path: Path) -> xr.Dataset:
    """Open a rain store or a forecast, whichever lies at a path.

    Raises the DataError of `nowcast.rain.store.open_rain` when it is neither.
    """
    try:
        return open_rain(path)
    except DataError as error:
        try:
            return open_forecast(path)
        except DataError:
            raise error from None


def check_replaceable(path: Path) -> None:
    """Raise a SettingsError when something other than a forecast lies at a forecast's path.

    Writing a forecast replaces the file or the whole folder at the path.
    """
    if not path.exists() or (path.is_dir() and not any(path.iterdir())):
        return
    try:
        open_forecast(path).close()
    except DataError as error:
        raise SettingsError(
            f"--out: expected a new name or an older forecast, found something else at "
            f"{path}; choose another name, or remove it"
        ) from error


def _found_instead(dataset: xr.Dataset) -> str | None:
    """Say what a Dataset is instead of a forecast; nothing when it is one."""
    rain = dataset.variables.get("rain_rate")
    if rain is None:
        return "no rain_rate"
    if rain.dims != ("lead_time", "y", "x"):
        return f"rain_rate ({', '.join(map(str, rain.dims))})"
    missing = {"lead_time", "forecast_reference_time", "time", "y", "x"} - dataset.coords.keys()
    if missing:
        return f"none of the coordinates {', '.join(sorted(map(str, missing)))}"
    return None


#: The dimension along which forecasts are written.
LEAD = "lead_time"
#: Bytes of a forecast that is written as a whole: for a small one that is quicker.
SMALL = 2**28
#: Chunks, which are whole fields, of a large forecast that are written at a time.
CHUNKS = 2


def write_leads(parts: Iterable[xr.Dataset], leads: int, path: Path, along: str = LEAD) -> None:
    """Write forecasts of one lead time each as one forecast, whole or not at all.

    - ``parts``: from `nowcast.forecasters.dataset.forecast_dataset`, in the order of lead times;
      each is needed only until the next one is asked for.
    - ``leads``: how many there are.
    - ``path``: a netCDF file if it ends in ``.nc``, else a zarr store.
    - ``along``: the dimension that the parts follow each other on.
    """
    if is_netcdf(path):
        write_parts(parts, path, along)
        return
    parts = iter(parts)
    first = next(parts)
    if first.nbytes * leads <= SMALL:
        write_zarr(concatenated(chain([first], parts), along), path)
    else:
        _write_zarr(first, parts, leads, path, along)


def concatenated(parts: Iterable[xr.Dataset], along: str) -> xr.Dataset:
    """Join Datasets along a dimension; everything else is the first one's."""
    return xr.concat(
        parts, along, data_vars="minimal", coords="minimal", compat="override", join="override",
        combine_attrs="override",
    )  # fmt: skip


def _write_zarr(
    first: xr.Dataset, others: Iterable[xr.Dataset], leads: int, path: Path, dimension: str
) -> None:
    import zarr

    # Each chunk that is written at a time is in memory once more.
    with replacing(path) as temporary, zarr.config.set({"async.concurrency": CHUNKS}):
        first = without_encoding(first)
        encoding = zarr_encoding(first, quick=True)
        along = [str(name) for name, v in first.variables.items() if dimension in v.dims]
        for name in along:
            # Units of the first time alone would be days.
            encoding[name] |= {k: v for k, v in first[name].encoding.items() if k != "_FillValue"}
            if first[name].ndim <= 2:  # small: all leads in one chunk
                encoding[name]["chunks"] = (*first[name].shape[:-1], leads)
        first.to_zarr(temporary, mode="w", zarr_format=3, consolidated=False, encoding=encoding)
        still = [name for name in first.variables if name not in along]
        del first
        for part in others:
            part.drop_vars(still).to_zarr(
                temporary, append_dim=dimension, zarr_format=3, consolidated=False
            )
            del part  # before the next one is made
        consolidate(temporary)
