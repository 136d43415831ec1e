"""Composites of any format: header of a file, and its maps as rain rate on their own grid."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nowcast.ingest.rainrate import ZRRelation
from nowcast.radar import cfnetcdf, fmi, knmi
from nowcast.radar.header import Format, Header
from nowcast.radar.plainfile import plain_file
from nowcast.radar.volume import DAMAGE, LIBRARY_LOCK, damaged

HEADERS = {
    Format.KNMI: knmi.read_header,
    Format.CFNETCDF: cfnetcdf.read_header,
    Format.FMI: fmi.read_header,
}


def read_header(path: Path, format: Format) -> Header:
    """Return the header of a composite, with its grid.

    Raises
    ------
    DataError
        When it is damaged, or says no time, projection or quantity that is rain.
    """
    with LIBRARY_LOCK, plain_file(path) as plain:
        try:
            return HEADERS[format](plain, str(path))
        except DAMAGE as error:
            raise damaged(path, format, error) from error


def read_rain(header: Header, index: int, relation: ZRRelation) -> NDArray[np.float32]:
    """Return the rain rate in mm h-1 of one map, (ny, nx) float32 with y and x increasing.

    Rain below 0, which adjustments to gauges leave in some products, is no measurement: missing.

    Parameters
    ----------
    header : Header
        Of the file.
    index : int
        Which of the header's times.
    relation : ZRRelation
        For composites of reflectivity; rates and accumulations do not need it.
    """
    path = Path(header.path)
    with LIBRARY_LOCK, plain_file(path) as plain:
        try:
            if header.format is Format.FMI:
                return relation.rain_rate(fmi.read_reflectivity(plain, header))
            reader = knmi.read_rain if header.format is Format.KNMI else cfnetcdf.read_rain
            rain = reader(plain, header, index)
        except DAMAGE as error:
            raise damaged(path, header.format, error) from error
    return np.where(rain < 0, np.float32(np.nan), rain)
