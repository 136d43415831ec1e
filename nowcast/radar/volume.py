"""Polar scans of any format: the header of a file, and the usable sweeps of a group of files."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from dask.utils import SerializableLock

from daskdl.errors import DaskdlError, DataError, MissingExtraError
from nowcast.radar import cfradial, iris, nexrad, odim, rainbow
from nowcast.radar.cuts import join_moments, lowest_cuts, usable_sweeps
from nowcast.radar.header import Format, Header
from nowcast.radar.plainfile import plain_file
from nowcast.radar.site import Site
from nowcast.radar.sweep import Classify, Sweep, elevation_of, from_xradar

if TYPE_CHECKING:
    import xarray as xr

# The HDF5 and netCDF C libraries may be entered by one thread at a time.
LIBRARY_LOCK = SerializableLock("nowcast-radar-files")

LIBRARIES = ("xradar", "h5py", "netCDF4", "pyproj")

# What third-party readers raise on files that are damaged.
DAMAGE = (
    OSError,
    EOFError,
    ValueError,
    KeyError,
    IndexError,
    TypeError,
    AttributeError,
    RuntimeError,
    ZeroDivisionError,
    OverflowError,
    AssertionError,
    NotImplementedError,
    MemoryError,
    struct.error,
    zlib.error,
)


class Reader(NamedTuple):
    """How one polar format is read."""

    read_header: Callable[[Path, str], Header]
    open_sweeps: Callable[[Path, int], AbstractContextManager[tuple[Site | None, list[xr.Dataset]]]]
    classify: Classify


READERS = {
    Format.NEXRAD: Reader(nexrad.read_header, nexrad.open_sweeps, nexrad.classify),
    Format.ODIM: Reader(odim.read_header, odim.open_sweeps, odim.classify),
    Format.IRIS: Reader(iris.read_header, iris.open_sweeps, iris.classify),
    Format.RAINBOW: Reader(rainbow.read_header, rainbow.open_sweeps, rainbow.classify),
    Format.CFRADIAL: Reader(cfradial.read_header, cfradial.open_sweeps, cfradial.classify),
}


def require_readers() -> None:
    """Raise a sentence that names the extra when a library that reads radar files is missing."""
    missing = [name for name in LIBRARIES if find_spec(name) is None]
    if missing:
        raise MissingExtraError(
            f"reading radar files needs {', '.join(missing)}: pip install 'daskdl[nowcast]'"
        )


def read_header(path: Path, format: Format) -> Header:
    """Return the header of a polar file.

    Raises
    ------
    DataError
        When it is damaged or says no time.
    """
    with LIBRARY_LOCK, plain_file(path) as plain:
        try:
            return READERS[format].read_header(plain, str(path))
        except DAMAGE as error:
            raise damaged(path, format, error) from error


def read_sweeps(
    paths: Sequence[Path], format: Format, *, cuts: int = 1, moment: str | None = None
) -> list[Sweep]:
    """Return the usable sweeps of one scan, lowest first.

    Parameters
    ----------
    paths : sequence of Path
        The files of the scan: volumes, single sweeps, or moments of the same sweeps.
    format : Format
        Their format.
    cuts : int
        Number of lowest elevations.
    moment : str, optional
        Name of the reflectivity to use.

    Raises
    ------
    DataError
        When a file is damaged or no sweep has reflectivity.
    """
    sweeps: list[Sweep] = []
    for path in paths:
        sweeps += _read_file(path, READERS[format], format, cuts, moment)
    usable = usable_sweeps(join_moments(sweeps), cuts)
    if not usable:
        raise DataError(
            f"{', '.join(str(path) for path in paths)}: expected a sweep with reflectivity "
            f"({moment or 'DBZH'}), found {len(sweeps)} sweeps without"
        )
    return usable


def _read_file(
    path: Path, reader: Reader, format: Format, cuts: int, moment: str | None
) -> list[Sweep]:
    with LIBRARY_LOCK, plain_file(path) as plain:
        try:
            with reader.open_sweeps(plain, cuts) as (site, datasets):
                planes = [
                    dataset
                    for dataset in datasets
                    if {"azimuth", "range"} <= set(dataset.dims) and min(dataset.sizes.values()) > 0
                ]
                low = lowest_cuts([elevation_of(dataset) for dataset in planes], cuts)
                return [
                    from_xradar(planes[i], site, reader.classify, moment)
                    for cut in low
                    for i in cut
                ]
        except DAMAGE as error:
            raise damaged(path, format, error) from error


def damaged(path: Path, format: Format, error: BaseException) -> DaskdlError:
    """Return the error that tells that a file could not be read and why."""
    if isinstance(error, DataError | MissingExtraError):
        return error
    text = str(error).strip().splitlines()
    reason = f"{type(error).__name__}: {text[0]}" if text else type(error).__name__
    return DataError(f"{path}: damaged or truncated {format} file ({reason})")
