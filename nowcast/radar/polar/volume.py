"""Polar scans of any format: the header of a file, and the usable sweeps of a group of files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from daskdl.errors import DataError, MissingExtraError
from nowcast.radar.guard import foreign_file, guarded
from nowcast.radar.header import Format, Header
from nowcast.radar.plainfile import joined_file
from nowcast.radar.polar import cfradial, cfradial2, gamic, iris, nexrad, odim, rainbow, uf
from nowcast.radar.polar.cuts import join_moments, usable_sweeps
from nowcast.radar.polar.sweep import Sweep
from nowcast.radar.units import BEYOND_ECHO, take_out_codes

LIBRARIES = ("xradar", "h5py", "h5netcdf", "pyproj")


class Reader(NamedTuple):
    """Reads one polar format."""

    read_header: Callable[[Path, str], Header]
    read_sweeps: Callable[[Path, int, str | None], list[Sweep]]


READERS = {
    Format.NEXRAD: Reader(nexrad.read_header, nexrad.read_sweeps),
    Format.ODIM: Reader(odim.read_header, odim.read_sweeps),
    Format.IRIS: Reader(iris.read_header, iris.read_sweeps),
    Format.RAINBOW: Reader(rainbow.read_header, rainbow.read_sweeps),
    Format.CFRADIAL: Reader(cfradial.read_header, cfradial.read_sweeps),
    Format.CFRADIAL2: Reader(cfradial2.read_header, cfradial2.read_sweeps),
    Format.GAMIC: Reader(gamic.read_header, gamic.read_sweeps),
    Format.UF: Reader(uf.read_header, uf.read_sweeps),
}


def require_readers() -> None:
    """Raise a sentence that names the extra when a library that reads radar files is missing."""
    missing = [name for name in LIBRARIES if find_spec(name) is None]
    if missing:
        raise MissingExtraError(
            f"reading radar files needs {', '.join(missing)}; pip install 'daskdl[nowcast]'"
        )


def read_header(path: Path, format: Format) -> Header:
    """Return the header of a polar file.

    Raises
    ------
    DataError
        When it is damaged or says no time.
    """
    with foreign_file(path, format) as plain:
        return READERS[format].read_header(plain, str(path))


def read_sweeps(
    paths: Sequence[Path], format: Format, cuts: int = 1, moment: str | None = None
) -> list[Sweep]:
    """Return the usable sweeps of one scan, lowest first.

    Parameters
    ----------
    paths : sequence of Path
        The files of the scan: volumes, single sweeps, or moments of the same sweeps; of NEXRAD the
        chunks of one volume in their order.
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
    for part in parts(paths, format):
        sweeps += read_part(part, format, cuts, moment)
    return usable(sweeps, paths, cuts, moment)


def parts(paths: Sequence[Path], format: Format) -> list[tuple[Path, ...]]:
    """Return the files of a scan in the groups that are read together: the chunks of a volume."""
    return [tuple(paths)] if format is Format.NEXRAD else [(path,) for path in paths]


def read_part(paths: Sequence[Path], format: Format, cuts: int, moment: str | None) -> list[Sweep]:
    """Return the sweeps of the lowest cuts of one file, or of chunks that make one."""
    if len(paths) > 1:
        with guarded(str(paths[0]), format), joined_file(paths) as path:
            return read_part([path], format, cuts, moment)
    with foreign_file(paths[0], format) as plain:
        sweeps = READERS[format].read_sweeps(plain, cuts, moment)
        for sweep in sweeps:
            if sweep.dbz is not None:
                take_out_codes(sweep.dbz, BEYOND_ECHO)
        return sweeps


def usable(
    sweeps: Sequence[Sweep], paths: Sequence[Path], cuts: int, moment: str | None
) -> list[Sweep]:
    """Return one sweep for each of the lowest cuts, with the moments of all files joined.

    Raises
    ------
    DataError
        When no sweep has reflectivity.
    """
    lowest = usable_sweeps(join_moments(sweeps), cuts)
    if not lowest:
        raise DataError(
            f"{', '.join(str(path) for path in paths)}: expected a sweep with reflectivity "
            f"({moment or 'DBZH'}), found {len(sweeps)} sweeps without"
            "; name the moment to read, such as TH"
        )
    return lowest
