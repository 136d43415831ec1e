"""Composites of any format: header of a file, and its maps as rain rate on their own grid."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import DataError
from nowcast.radar.guard import foreign_file
from nowcast.radar.header import Format, Header
from nowcast.radar.maps import cfnetcdf, fmi, geotiff, grib, knmi, odim_composite, radolan
from nowcast.radar.units import BEYOND_ECHO, BEYOND_RAIN, take_out_codes
from nowcast.rain.rainrate import ZRRelation


class Reader(NamedTuple):
    """Reads one format of composites.

    ``read_values(path, header, index)`` gives rain in mm h-1, or dBZ with minus infinity for no
    echo if the header says reflectivity; (ny, nx) float32, y and x increasing, NaN for missing.
    """

    read_header: Callable[[Path, str], Header]
    read_values: Callable[[Path, Header, int], NDArray[np.float32]]


READERS = {
    Format.KNMI: Reader(knmi.read_header, knmi.read_values),
    Format.CFNETCDF: Reader(cfnetcdf.read_header, cfnetcdf.read_values),
    Format.CFZARR: Reader(cfnetcdf.read_header, cfnetcdf.read_values),
    Format.FMI: Reader(fmi.read_header, fmi.read_values),
    Format.ODIM_COMPOSITE: Reader(odim_composite.read_header, odim_composite.read_values_of),
    Format.RADOLAN: Reader(radolan.read_header, radolan.read_values),
    Format.GRIB: Reader(grib.read_header, grib.read_values),
    Format.GEOTIFF: Reader(geotiff.read_header, geotiff.read_values),
}


def read_header(path: Path, format: Format) -> Header:
    """Return the header of a composite, with its grid.

    Raises
    ------
    DataError
        When it is damaged, or says no time, projection or quantity that is rain.
    """
    with foreign_file(path, format) as plain:
        return READERS[format].read_header(plain, str(path))


def read_rain(header: Header, index: int, relation: ZRRelation) -> NDArray[np.float32]:
    """Return the rain rate in mm h-1 of one map, (ny, nx) float32 with y and x increasing.

    Rain below 0, which adjustments to gauges leave in some products, and above 900 mm/h (less for
    more than an hour) or an echo of 150 dBZ is no measurement: missing.

    Parameters
    ----------
    header : Header
        Of the file.
    index : int
        Which of the header's times.
    relation : ZRRelation
        For composites of reflectivity; rates and accumulations do not need it.
    """
    with foreign_file(Path(header.path), header.format) as plain:
        values = READERS[header.format].read_values(plain, header, index)
        if header.grid is not None and values.shape != header.grid.shape:
            raise DataError(f"expected a map of {header.grid.shape} cells, found {values.shape}")
        if header.reflectivity:
            take_out_codes(values, BEYOND_ECHO)
            return relation.rain_rate(values)
        values[(values < 0) | np.isinf(values)] = np.nan
        hours = (header.accumulation or np.timedelta64(0)) / np.timedelta64(1, "h")
        take_out_codes(values, BEYOND_RAIN / max(1.0, hours) ** 0.5)
        return values
