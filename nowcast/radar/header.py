"""Header: facts from a radar file's first bytes or attributes, and the radar's site."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

import numpy as np

from daskdl.errors import DataError, SettingsError
from nowcast.rain.grid import Grid


@dataclass(frozen=True)
class Site:
    """Latitude and longitude in degrees (WGS 84) and altitude of the antenna in metres."""

    latitude: float
    longitude: float
    altitude: float = 0.0

    def __post_init__(self) -> None:
        degrees = abs(self.latitude) <= 90 and abs(self.longitude) <= 360
        if not (degrees and math.isfinite(self.altitude)):
            raise SettingsError(
                f"site: expected degrees and metres, found {self}; give latitude, then longitude"
            )

    @classmethod
    def parse(cls, text: str) -> Site:
        """Return the site that ``"LAT,LON"`` or ``"LAT,LON,ALT"`` gives."""
        try:
            numbers = [float(part) for part in text.split(",")]
            if len(numbers) not in (2, 3):
                raise ValueError
            return cls(*numbers)
        except ValueError as error:
            if isinstance(error, SettingsError):
                raise
            raise SettingsError(
                f"site: expected LAT,LON or LAT,LON,ALT in degrees and metres, found {text!r}"
                "; write such as 51.5,4.25,33"
            ) from None

    @classmethod
    def known(cls, latitude: float, longitude: float, altitude: float) -> Site | None:
        """Return a site; None for the numbers of files without one: 0, 0 or NaN."""
        if not (math.isfinite(latitude) and math.isfinite(longitude)):
            return None
        if abs(latitude) < 1e-6 and abs(longitude) < 1e-6:
            return None
        return cls(latitude, longitude, altitude if math.isfinite(altitude) else 0.0)

    def near(self, other: Site) -> bool:
        """Return whether another site is within about a kilometre."""
        return math.dist((self.latitude, self.longitude), (other.latitude, other.longitude)) < 0.01

    def __str__(self) -> str:
        return f"{self.latitude:.5f},{self.longitude:.5f},{self.altitude:.0f}"


# How far the time that a file states for itself may be from the time of its first ray.
APART = np.timedelta64(60, "m")


class Format(StrEnum):
    """The known formats, and their properties.

    Attributes
    ----------
    polar : bool
        Whether files hold sweeps of one radar; else a map.
    endings : tuple of str
        A file of a folder with one of these endings is a failure if it cannot be read.
    single_code : bool
        Whether one code means both "no echo" and "not measured".
    """

    polar: bool
    endings: tuple[str, ...]
    single_code: bool

    def __new__(cls, name: str, kind: str, endings: str = "", codes: int = 2) -> Self:
        """Make a member; its value is its name."""
        member = str.__new__(cls, name)
        member._value_ = name
        member.polar, member.single_code = kind == "polar", codes == 1
        member.endings = tuple(endings.split())
        return member

    NEXRAD = "NEXRAD Level II", "polar", ".ar2v"
    ODIM = "ODIM_H5", "polar", ".h5 .hdf .hdf5"
    IRIS = "Sigmet/IRIS", "polar", ".raw"
    CFRADIAL = "CfRadial1", "polar", ".nc .nc4 .cdf", 1
    CFRADIAL2 = "CfRadial2", "polar", ".nc .nc4", 1
    GAMIC = "GAMIC HDF5", "polar"
    RAINBOW = "Rainbow 5", "polar", ".vol"
    UF = "Universal Format", "polar", ".uf", 1
    KNMI = "KNMI HDF5", "map", ".h5"
    CFNETCDF = "CF netCDF", "map", ".nc .nc4 .cdf"
    CFZARR = "CF zarr", "map"
    FMI = "FMI PGM", "map", ".pgm"
    ODIM_COMPOSITE = "ODIM_H5 composite", "map", ".h5 .hdf .hdf5"
    RADOLAN = "RADOLAN", "map"
    GRIB = "GRIB2", "map", ".grib2 .grb2"
    GEOTIFF = "GeoTIFF", "map", ".tif .tiff"


POLAR = [format for format in Format if format.polar]
#: Endings of radar files, and of what archives pack them with.
ENDINGS = {ending for format in Format for ending in format.endings} | {".gz", ".bz2"}

# Five times the largest composites (24 million cells): a map of them takes half a gigabyte.
MOST_CELLS = 1 << 27

# What files, and programs that export them, have as the name of a radar without one.
NAMELESS = ("", "none", "null", "unknown")


def compare_times(key: str, stated: np.datetime64, first: np.datetime64) -> None:
    """Refuse a file whose time ``stated`` by ``key`` is over ``APART`` from a ray's."""
    if abs(stated - first) > APART:
        raise DataError(
            f"expected the first ray within {APART} of {key}, {stated}, found {first}; mend either"
        )


@dataclass(frozen=True)
class Header:
    """Header of one file."""

    path: str  #: The file.
    format: Format  #: Its format.
    station: str  #: Name of the radar or of the composite; files of one series carry the same.
    #: UTC. For polar files the start of the first sweep; for composites the valid time of each map
    #: in the file, which for accumulations is the end of the interval.
    times: tuple[np.datetime64, ...]
    site: Site | None = None  #: Of the radar, if the header says it.
    grid: Grid | None = None  #: Of a composite.
    #: The file is one sweep of a volume whose others are in other files.
    single_sweep: bool = False
    #: Length of the interval that a composite's rain was accumulated over; None for an instant.
    accumulation: np.timedelta64 | None = None
    #: A composite's values are reflectivity in dBZ, and become rain by the Z-R relation.
    reflectivity: bool = False
    #: Number of the file among those that a NEXRAD volume arrives in (real-time chunks); their time
    #: is the volume's.
    part: int | None = None

    def __post_init__(self) -> None:
        """Name what has no name by its place: two places are two radars."""
        site = self.site
        if self.station.strip().lower() in NAMELESS and (site or self.grid) is not None:
            where = f"{site.latitude:.2f},{site.longitude:.2f}" if site else str(self.grid)
            object.__setattr__(self, "station", f"no name at {where}")
