"""Reading of radar files of any format: headers, maps of rain, and sweeps of a scan."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import DataError, MissingExtraError
from nowcast.radar.formats import recognise
from nowcast.radar.guard import foreign_file, guarded
from nowcast.radar.header import MOST_CELLS, Format, Header
from nowcast.radar.maps import cfnetcdf, fmi, geotiff, grib, knmi, odim_composite, radolan
from nowcast.radar.plainfile import joined_file
from nowcast.radar.polar import cfradial, gamic, iris, nexrad, odim, rainbow, uf
from nowcast.radar.polar.cuts import join_moments, usable_sweeps
from nowcast.radar.polar.sweep import Sweep
from nowcast.radar.units import BEYOND_ECHO, BEYOND_RAIN, take_out_codes
from nowcast.rain.rainrate import ZRRelation

LIBRARIES = ("xradar", "h5py", "h5netcdf", "pyproj")
# What damage makes of a time is mostly zero or far away; no archive of digital scans is older.
FIRST, LAST = np.datetime64("1980-01-01"), np.datetime64("2100-01-01")


class PolarReader(Protocol):
    """A module that reads a format of polar files; paths are of unpacked files."""

    def read_header(self, path: Path, name: str) -> Header:
        """Return the header of a file that is called ``name`` in it."""

    def read_sweeps(self, path: Path, cuts: int, moment: str | None) -> list[Sweep]:
        """Return the sweeps of the ``cuts`` lowest elevations."""


class MapReader(Protocol):
    """A module that reads a format of maps; paths are of unpacked files."""

    def read_header(self, path: Path, name: str) -> Header:
        """Return the header of a file that is called ``name`` in it, with its grid."""

    def read_values(self, path: Path, header: Header, index: int) -> NDArray[np.float32]:
        """Return rain in mm h-1 of one of the header's times, or dBZ if it says reflectivity.

        (ny, nx), y and x increasing, NaN for missing; minus infinity is no echo.
        """


SWEEP_READERS: dict[Format, PolarReader] = {
    Format.NEXRAD: nexrad,
    Format.ODIM: odim,
    Format.IRIS: iris,
    Format.RAINBOW: rainbow,
    Format.CFRADIAL: cfradial,
    Format.CFRADIAL2: cfradial,
    Format.GAMIC: gamic,
    Format.UF: uf,
}
MAP_READERS: dict[Format, MapReader] = {
    Format.KNMI: knmi,
    Format.CFNETCDF: cfnetcdf,
    Format.CFZARR: cfnetcdf,
    Format.FMI: fmi,
    Format.ODIM_COMPOSITE: odim_composite,
    Format.RADOLAN: radolan,
    Format.GRIB: grib,
    Format.GEOTIFF: geotiff,
}


def require_readers() -> None:
    """Raise an error that names the extra if a library for radar files is missing."""
    missing = [name for name in LIBRARIES if find_spec(name) is None]
    if missing:
        raise MissingExtraError(
            f"reading radar files needs {', '.join(missing)}; pip install 'daskdl[nowcast]'"
        )


def read_header(path: Path) -> Header:
    """Return the header of a file of any known format; raise DataError for others."""
    format = recognise(path)
    reader = SWEEP_READERS[format] if format.polar else MAP_READERS[format]
    with foreign_file(path, format) as unpacked:
        header = reader.read_header(unpacked, str(path))
    wrong = [str(time) for time in header.times if not FIRST <= time < LAST]  # no time is not, too
    if wrong or not header.times:
        raise DataError(
            f"{path}: expected times from {FIRST} on and before {LAST}, found "
            f"{(*wrong, 'none')[0]}; mend the file or leave it out"
        )
    if header.grid is not None and header.grid.nx * header.grid.ny > MOST_CELLS:
        raise DataError(
            f"{path}: expected a grid of at most {MOST_CELLS} cells, found {header.grid.shape}"
            "; cut a part out of it"
        )
    return header


def read_rain(header: Header, index: int, relation: ZRRelation) -> NDArray[np.float32]:
    """Return the rain rate in mm h-1 of the ``index``-th of a header's times, (ny, nx) float32.

    Rows run from south to north. Rain below 0, which adjustments to gauges leave in some products,
    rain above 900 mm/h (less for more than an hour) and echo above 150 dBZ are missing. The
    relation is for reflectivity; rates and accumulations do not need it.
    """
    with foreign_file(Path(header.path), header.format) as unpacked:
        values = MAP_READERS[header.format].read_values(unpacked, header, index)
        if header.grid is not None and values.shape != header.grid.shape:
            raise DataError(f"expected a map of {header.grid.shape} cells, found {values.shape}")
        if header.reflectivity:
            take_out_codes(values, BEYOND_ECHO)
            return relation.rain_rate(values)
        values[(values < 0) | np.isinf(values)] = np.nan
        hours = (header.accumulation or np.timedelta64(0)) / np.timedelta64(1, "h")
        take_out_codes(values, BEYOND_RAIN / max(1.0, hours) ** 0.5)
        return values


def read_sweeps(
    paths: Sequence[Path], format: Format, cuts: int = 1, moment: str | None = None
) -> list[Sweep]:
    """Return the usable sweeps of one scan for the ``cuts`` lowest elevations, lowest first.

    Files are volumes, single sweeps, moments of the same sweeps, or NEXRAD's chunks of one volume
    in order. ``moment`` is the name of the reflectivity. Raises DataError if a file is damaged or
    no sweep has reflectivity.
    """
    sweeps: list[Sweep] = []
    for part in parts(paths, format):
        sweeps += read_part(part, format, cuts, moment)
    return usable(sweeps, paths, cuts, moment)


def parts(paths: Sequence[Path], format: Format) -> list[tuple[Path, ...]]:
    """Return the files of a scan in groups to read together: the chunks of a volume."""
    return [tuple(paths)] if format is Format.NEXRAD else [(path,) for path in paths]


def read_part(paths: Sequence[Path], format: Format, cuts: int, moment: str | None) -> list[Sweep]:
    """Return the sweeps of the lowest cuts of one file, or of its chunks."""
    if len(paths) > 1:
        with guarded(str(paths[0]), format), joined_file(paths) as path:
            return read_part([path], format, cuts, moment)
    with foreign_file(paths[0], format) as unpacked:
        sweeps = SWEEP_READERS[format].read_sweeps(unpacked, cuts, moment)
        for sweep in sweeps:
            if sweep.dbz is not None:
                take_out_codes(sweep.dbz, BEYOND_ECHO)
        return sweeps


def usable(
    sweeps: Sequence[Sweep], paths: Sequence[Path], cuts: int, moment: str | None
) -> list[Sweep]:
    """Return one sweep for each of the lowest cuts, with the moments of all files joined."""
    lowest = usable_sweeps(join_moments(sweeps), cuts)
    if not lowest:
        raise DataError(
            f"{', '.join(str(path) for path in paths)}: expected a sweep with reflectivity "
            f"({moment or 'DBZH'}), found {len(sweeps)} sweeps without"
            "; name the moment to read, such as --moment TH"
        )
    return lowest
