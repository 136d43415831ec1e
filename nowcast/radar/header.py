"""Header: facts of a radar file from its first bytes or attributes, before its data are read."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from daskdl.errors import DataError
from nowcast.radar.site import Site
from nowcast.rain.grid import Grid

# How far the time that a file states of itself may lie from that of its first ray.
APART = np.timedelta64(60, "m")


class Format(StrEnum):
    """The formats that are read."""

    NEXRAD = "NEXRAD Level II"
    ODIM = "ODIM_H5"
    IRIS = "Sigmet/IRIS"
    CFRADIAL = "CfRadial1"
    CFRADIAL2 = "CfRadial2"
    GAMIC = "GAMIC HDF5"
    RAINBOW = "Rainbow 5"
    UF = "Universal Format"
    KNMI = "KNMI HDF5"
    CFNETCDF = "CF netCDF"
    CFZARR = "CF zarr"
    FMI = "FMI PGM"
    ODIM_COMPOSITE = "ODIM_H5 composite"
    RADOLAN = "RADOLAN"
    GRIB = "GRIB2"
    GEOTIFF = "GeoTIFF"

    @property
    def polar(self) -> bool:
        """Whether files hold sweeps of one radar and not a map."""
        return self in POLAR


POLAR = {
    Format.NEXRAD,
    Format.ODIM,
    Format.IRIS,
    Format.CFRADIAL,
    Format.CFRADIAL2,
    Format.GAMIC,
    Format.RAINBOW,
    Format.UF,
}

# Five times the largest composites (24 million cells): a map of them takes half a gigabyte.
MOST_CELLS = 1 << 27


def compare_times(key: str, stated: np.datetime64, first: np.datetime64) -> None:
    """Refuse a file whose time ``stated`` by ``key`` is over ``APART`` from that of a ray."""
    if abs(stated - first) > APART:
        raise DataError(
            f"expected the first ray within {APART} of {key}, {stated}, found {first}; mend either"
        )


@dataclass(frozen=True)
class Header:
    """Header of one file.

    Parameters
    ----------
    path : str
        The file.
    format : Format
        Its format.
    station : str
        Name of the radar or of the composite; files of one series carry the same.
    times : tuple of datetime64
        UTC. For polar files the start of the first sweep; for composites the valid time of each map
        in the file, which for accumulations is the end of the interval.
    site : Site or None
        Of the radar, if the header says it.
    grid : Grid or None
        Of a composite.
    single_sweep : bool
        The file is one sweep of a volume whose others are in other files.
    accumulation : timedelta64 or None
        Length of the interval that a composite's rain was accumulated over; None for an instant.
    reflectivity : bool
        A composite's values are reflectivity in dBZ, and become rain by the Z-R relation.
    part : int or None
        Number of the file among those that a NEXRAD volume arrives in (real-time chunks); their
        time is the volume's.
    """

    path: str
    format: Format
    station: str
    times: tuple[np.datetime64, ...]
    site: Site | None = None
    grid: Grid | None = None
    single_sweep: bool = False
    accumulation: np.timedelta64 | None = None
    reflectivity: bool = False
    part: int | None = None
