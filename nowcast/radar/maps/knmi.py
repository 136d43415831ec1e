"""Composites of KNMI in its own HDF5 layout (KNMI HDF5 Data Format Specification 3.5)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyproj
from numpy.typing import NDArray

from daskdl.errors import DataError
from nowcast.radar.attributes import count, number, text
from nowcast.radar.header import MOST_CELLS, Format, Header
from nowcast.radar.maps.projection import compare_corners, in_metres
from nowcast.rain.grid import Grid

MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]


def read_header(path: Path, name: str) -> Header:
    """Return the header of the composite at ``path``; its time is the end of the accumulation."""
    with h5py.File(path, "r") as file:
        overview, image = file["overview"], file["image1"]
        quantity = text(image, "image_geo_parameter").upper()
        echo = "REFLECTIVITY" in quantity or "DBZ" in quantity
        if not echo and ("ACCUM" not in quantity or "MM" not in quantity):
            raise DataError(
                f"expected an accumulation of precipitation in mm or reflectivity in dBZ, "
                f"found {quantity!r}; give files of rain or reflectivity"
            )
        images = sum(re.fullmatch(r"image\d+", key) is not None for key in file)
        if images > 1:
            raise DataError(
                f"expected one image, found {images}, as in forecasts; give files of what "
                "was observed"
            )
        end = _time(text(overview, "product_datetime_end"))
        start = _time(text(overview, "product_datetime_start"))
        if not echo and not end > start:
            raise DataError(f"expected an accumulation that ends after {start}, found {end}")
        return Header(
            path=name,
            format=Format.KNMI,
            station=text(overview, "product_group_name") or "KNMI composite",
            times=(end,),
            grid=_grid(file["geographic"]),
            accumulation=None if echo else end - start,
            reflectivity=echo,
        )


def read_values(path: Path, header: Header, index: int) -> NDArray[np.float32]:
    """Return the mean rain rate in mm h-1, or dBZ, (ny, nx) with y and x increasing.

    The lowest number of reflectivity is no echo: files have one code for missing and no echo, and
    another one for cells outside of the image.
    """
    with h5py.File(path, "r") as file:
        raw = file["image1/image_data"][:]
        calibration = file["image1/calibration"]
        scale, offset = _calibration(text(calibration, "calibration_formulas"))
        missing = [
            int(np.asarray(calibration.attrs[key]).reshape(-1)[0])
            for key in ("calibration_missing_data", "calibration_out_of_image")
            if key in calibration.attrs
        ]
    rain = (scale * raw + offset).astype(np.float32)
    rain[np.isin(raw, missing)] = np.nan
    if header.accumulation is None:
        rain[raw == 0] = -np.inf
    else:
        rain /= np.float32(header.accumulation / np.timedelta64(1, "h"))
    # Row 0 is the northern one.
    return np.ascontiguousarray(rain[::-1])


def _calibration(formula: str) -> tuple[float, float]:
    """Return scale and offset of a formula like ``GEO=0.01*PV+0.0`` or ``GEO=0.5*PV+-32.0``."""
    number = r"[-+]?\d*\.?\d+(?:[eE][-+]?\d+)?"
    match = re.fullmatch(rf"GEO\s*=\s*({number})\s*\*\s*PV\s*([-+]\s*{number})?", formula.strip())
    if match is None:
        raise DataError(f"expected a calibration like GEO=0.01*PV+0.0, found {formula!r}")
    offset = (match[2] or "0").replace(" ", "").replace("+-", "-")
    return float(match[1]), float(offset)


def _time(text: str) -> np.datetime64:
    """Return the time of a text like ``26-AUG-2010;03:00:00.000``."""
    match = re.fullmatch(r"(\d{2})-([A-Z]{3})-(\d{4});(\d{2}:\d{2}:\d{2})(?:\.\d+)?", text.upper())
    if match is None or match[2] not in MONTHS:
        raise DataError(f"expected a time like 26-AUG-2010;03:00:00.000, found {text!r}")
    return np.datetime64(f"{match[3]}-{MONTHS.index(match[2]) + 1:02d}-{match[1]}T{match[4]}", "s")


def _grid(geographic: Any) -> Grid:
    """Return the grid; the file counts in kilometres and rows from the north."""
    units = text(geographic, "geo_dim_pixel").upper().split(",")[0]
    if units != "KM":
        raise DataError(f"expected pixels in KM, found {units!r}")
    if (pixel := text(geographic, "geo_pixel_def", "LU").upper()) != "LU":
        raise DataError(f"expected offsets of pixels' upper left corners (LU), found {pixel!r}")
    dx, dy = number(geographic, "geo_pixel_size_x"), -number(geographic, "geo_pixel_size_y")
    nx, ny = (count(geographic, f"geo_number_{of}", MOST_CELLS) for of in ("columns", "rows"))
    west = number(geographic, "geo_column_offset") * dx
    north = -number(geographic, "geo_row_offset") * dy
    projection = in_metres(text(geographic["map_projection"], "projection_proj4_params"))
    corners = np.asarray(geographic.attrs.get("geo_product_corners", np.full(8, np.nan))).ravel()
    if corners.size != 8:
        raise DataError(f"expected geo_product_corners of 8 numbers, found {corners.size}")
    # In the order south-west, north-west, north-east, south-east.
    north_east = pyproj.Proj(projection)(*corners[4:6].tolist())
    south_west = (west * 1000.0, (north - dy * ny) * 1000.0)
    compare_corners(south_west, north_east, (nx, ny), (dx * 1000.0, dy * 1000.0), "m")
    x0, y0 = south_west[0] + dx * 500.0, south_west[1] + dy * 500.0
    return Grid(crs=projection, x0=x0, y0=y0, dx=dx * 1000.0, dy=dy * 1000.0, nx=nx, ny=ny)
