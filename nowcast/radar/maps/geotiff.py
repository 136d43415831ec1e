"""Composites of the Finnish Meteorological Institute in GeoTIFF: reflectivity, rain rate or amount.

GDAL's metadata have unit, gain (or scale), offset and codes. The name of a file without a unit
states the product, with the institute's documented conversion: dBZ = 0.5 n - 32, mm h-1 = 0.01 n,
and mm = 0.01 n over the hours of the name (RR12H). The lowest number is no echo, the highest
missing. Floating-point numbers, and numbers with a unit and no gain, are the quantity.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pyproj
from numpy.typing import NDArray

from daskdl.errors import DataError, MissingExtraError, needed
from nowcast.radar.attributes import read_time
from nowcast.radar.header import MOST_CELLS, Format, Header
from nowcast.radar.maps.projection import check_metres
from nowcast.radar.units import rain_factor
from nowcast.rain.grid import Grid

# By unit: factor and offset where the file has none.
CONVERSIONS = {"dbz": (0.5, -32.0), "mm/h": (0.01, 0.0), "mm": (0.01, 0.0)}
#: What a file's name says of its unit; amounts are RR with a number.
NAMES = {r"(?<![a-z])(dbz)(?![a-z])": "dbz", r"(?<![a-z])(rr|rate)(?![a-z0-9])": "mm/h"}
#: Of amounts: the hours that they fell in, in the file's name.
HOURS = re.compile(r"(?<![a-z])rr(\d{1,2})h(?![a-z])")
#: The code of a projection that has none and is described by the file's own numbers.
OWN_PROJECTION = 32767
LONGEST_METADATA = 1 << 16


def read_header(path: Path, name: str) -> Header:
    """Return the header of the composite at ``path``, called ``name``."""
    with _open(path) as file:
        page, items = file.pages[0], _items(file.pages[0])
        maps = sum(not (one.is_reduced or one.is_mask) for one in file.pages)
        if maps > 1:  # overviews and masks are no maps of their own
            raise DataError(
                f"expected one map, found {maps} pages; write a file for each: "
                "gdal_translate GTIFF_DIR:1:FILE.tif ONE.tif"
            )
        unit = _unit(items, name)
        return Header(
            path=name,
            format=Format.GEOTIFF,
            station=items.get("composite area") or "FMI composite",
            times=(_time(items, name),),
            grid=_grid(page),
            accumulation=_interval(name) if unit == "mm" else None,
            reflectivity=unit == "dbz",
        )


def read_values(path: Path, header: Header, index: int) -> NDArray[np.float32]:
    """Return dBZ or mm h-1, (ny, nx) with y and x increasing."""
    with _open(path) as file:
        page, items = file.pages[0], _items(file.pages[0])
        _size(page)
        try:
            raw = page.asarray()
        except ValueError as error:
            if "imagecodecs" in str(error):
                raise MissingExtraError(
                    f"{header.path}: reading this compression needs imagecodecs; pip install "
                    "'daskdl[geotiff]'"
                ) from error
            raise
    if raw.dtype.kind not in "uif":
        raise DataError(
            f"expected an image of numbers, found {raw.dtype}; convert it to whole ones"
        )
    unit = "dbz" if header.reflectivity else "mm/h" if header.accumulation is None else "mm"
    stated = items.get("unit", "")
    gain, offset = CONVERSIONS[unit] if raw.dtype.kind in "ui" and not stated else (1.0, 0.0)
    gain, offset = _number(items, "gain", gain), _number(items, "offset", offset)
    factor = _factor(stated, unit) or 1.0
    values = ((raw * np.float64(gain) + offset) * factor).astype(np.float32)
    if header.accumulation is not None:
        values /= np.float32(header.accumulation / np.timedelta64(1, "h"))
    silent = np.float32(-np.inf if header.reflectivity else 0.0)
    highest = float(np.iinfo(raw.dtype).max) if raw.dtype.kind in "ui" else np.nan
    lowest = 0.0 if raw.dtype.kind in "ui" else np.nan
    values[raw == _number(items, "nodata", highest)] = np.nan
    values[raw == _number(items, "undetect", lowest)] = silent
    return np.ascontiguousarray(values[::-1])


def _open(path: Path) -> Any:
    with needed("reading GeoTIFF files needs tifffile; pip install 'daskdl[geotiff]'"):
        import tifffile
    return tifffile.TiffFile(path)


def _items(page: Any) -> dict[str, str]:
    """Return GDAL's metadata by lower-case names of items, with the unit of the quantity.

    XML with entities is refused: GDAL does not write it, and it could expand to any size.
    """
    tag = page.tags.get("GDAL_METADATA")
    text = str(tag.value).strip("\x00 \n") if tag is not None else ""
    nodata = page.tags.get("GDAL_NODATA")
    items = {} if nodata is None else {"nodata": str(nodata.value).strip("\x00 ")}
    if not text or len(text) > LONGEST_METADATA or "<!" in text:
        return items
    for item in ElementTree.fromstring(text).iter("Item"):
        key = item.get("name", "").lower()
        items[key] = (item.text or "").strip()
        if key == "quantity" and "unit" in item.attrib:
            items["unit"] = item.get("unit", "").lower()
        elif item.get("role") == "unittype":  # GDAL's own place for it
            items.setdefault("unit", items[key].lower())
    if "scale" in items:  # GDAL's own word for the gain
        items.setdefault("gain", items["scale"])
    return items


def _number(items: dict[str, str], key: str, default: float) -> float:
    try:
        return float(items.get(key, default))
    except ValueError:
        raise DataError(
            f"expected a number as {key} in the metadata, found {items[key]!r}; mend the file"
        ) from None


def _unit(items: dict[str, str], name: str) -> str:
    """Return the unit of :data:`CONVERSIONS` that the values become."""
    unit = items.get("unit", "")
    if unit:
        known = [one for one in CONVERSIONS if one == unit or _factor(unit, one)]
    else:
        file = Path(name).name.lower()
        known = ["mm"] if HOURS.search(file) else []
        known += [one for pattern, one in NAMES.items() if re.search(pattern, file)]
    if known:
        return known[0]
    raise DataError(
        "expected a quantity in dBZ, mm/h or mm in the metadata, or DBZ, RR or RR1H in the file's "
        f"name, found {unit or 'none'}; write it into either"
    )


def _factor(stated: str, unit: str) -> float | None:
    """Return the factor from a stated unit to mm/h or mm; None for others."""
    kinds = {"mm/h": "rate", "mm": "amount"}
    return rain_factor(stated, kinds[unit]) if unit in kinds else None


def _interval(name: str) -> np.timedelta64:
    """Return the length of the interval of an amount, from the file's name."""
    match = HOURS.search(Path(name).name.lower())
    if match is None or not int(match[1]):
        raise DataError(
            "expected the hours of the amount in the file's name, as RR12H, found "
            f"{Path(name).name}; write them into it"
        )
    return np.timedelta64(int(match[1]) * 3600, "s")


def _time(items: dict[str, str], name: str) -> np.datetime64:
    """Return the time of the metadata, or the one in the file's name (YYYYMMDDhhmm)."""
    stated = items.get("observation time", "")
    named = re.search(r"(?<!\d)(20\d{10})", Path(name).name)
    match = re.fullmatch(r"(\d{12})\d*", stated) or named
    if match and named and abs(_moment(match) - _moment(named)) > np.timedelta64(60, "m"):
        raise DataError(
            f"expected the time of the file's name, {_moment(named)}, in the metadata, found "
            f"{_moment(match)}; mend either"
        )
    if match is None:
        raise DataError(
            "expected an observation time YYYYMMDDhhmm in the metadata or the file's name, found "
            f"{stated or 'none'}; write it into either"
        )
    return _moment(match)


def _moment(match: re.Match[str]) -> np.datetime64:
    return read_time(match[1][:8], match[1][8:] + "00")


def _size(page: Any) -> tuple[int, int]:
    shape = tuple(page.shape)
    if len(shape) != 2 or not 0 < shape[0] * shape[1] <= MOST_CELLS:
        raise DataError(
            f"expected one band of at most {MOST_CELLS} cells, found {shape}; cut a part out of it"
        )
    return shape[0], shape[1]


def _grid(page: Any) -> Grid:
    ny, nx = _size(page)
    tags = page.geotiff_tags or {}
    code, scale = tags.get("ProjectedCSTypeGeoKey"), tags.get("ModelPixelScale")
    tie = tags.get("ModelTiepoint")
    if code is None or scale is None or tie is None or len(tie) < 6 or len(scale) < 2:
        raise DataError(
            "expected a projection by its EPSG code, a pixel scale and a tie point, found "
            f"{', '.join(map(str, tags)) or 'none'}; write it with these, as gdal_translate does"
        )
    if int(code) == OWN_PROJECTION:
        raise DataError(
            "expected a projection with an EPSG code, found one that the file describes by itself"
            "; give it the code, as gdal_edit.py -a_srs EPSG:3067 or gdalwarp -t_srs does"
        )
    crs = pyproj.CRS.from_epsg(int(code))
    check_metres(crs)
    dx, dy = float(scale[0]), float(scale[1])
    # The tie point is a corner of a cell, or its centre where the file says that pixels are points.
    half = 0.0 if int(tags.get("GTRasterTypeGeoKey", 1)) == 2 else 0.5
    west, north = tie[3] - tie[0] * dx, tie[4] + tie[1] * dy
    x0, y0 = west + half * dx, north - (ny - 1 + half) * dy
    return Grid(crs=crs.to_wkt(), x0=x0, y0=y0, dx=dx, dy=dy, nx=nx, ny=ny)
