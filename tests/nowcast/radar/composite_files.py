"""Small composites in several formats: a map of 24 x 20 cells; a corner is missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

NY, NX = 24, 20


def rain() -> np.ndarray:
    """Rain rate in mm h-1, (24, 20), rows from south to north; 0 dry, NaN missing."""
    values = np.zeros((NY, NX), np.float32)
    values[4:10, 3:8] = 1.5
    values[6, 5] = 12.0
    values[-3:, -4:] = np.nan
    return values


def write_odim(path: Path, quantity: str = "RATE", **where: Any) -> Path:
    """Write a composite as OPERA does: reflectivity is 10 dBZ a mm h-1, amounts of 15 minutes."""
    import h5py
    import pyproj

    projection = where.pop(
        "projdef", "+proj=laea +lat_0=55 +lon_0=10 +x_0=1950000 +y_0=-2100000 +units=m +ellps=WGS84"
    )
    x, y = np.array([1_000_000.0, 1_040_000.0]), np.array([900_000.0, 948_000.0])
    longitude, latitude = pyproj.Proj(projection)(x, y, inverse=True)
    values = rain().astype(np.float64) * {"ACRR": 0.25, "DBZH": 10.0}.get(quantity, 1.0)
    values[rain() == 0] = -8888000.0
    values[np.isnan(rain())] = -9999000.0
    with h5py.File(path, "w") as file:
        file.attrs["Conventions"] = np.bytes_("ODIM_H5/V2_3")
        what = file.create_group("what").attrs
        for key, value in {
            "object": "COMP", "version": "H5rad 2.3", "date": "20240601", "time": "121500",
            "source": "ORG:247",
        }.items():  # fmt: skip
            what[key] = np.bytes_(value)
        place = file.create_group("where").attrs
        place["projdef"] = np.bytes_(projection)
        for key, value in {
            "xsize": NX, "ysize": NY, "xscale": 2000.0, "yscale": 2000.0,
            "LL_lon": longitude[0], "LL_lat": latitude[0],
            "UR_lon": longitude[1], "UR_lat": latitude[1],
        }.items():  # fmt: skip
            place[key] = where.get(key, value)
        for number, name in enumerate(("QIND", quantity), start=1):
            dataset = file.create_group(f"dataset{number}")
            what = dataset.create_group("what").attrs
            for key, value in {
                "product": "COMP", "quantity": name, "startdate": "20240601",
                "starttime": "120000", "enddate": "20240601", "endtime": "121500",
            }.items():  # fmt: skip
                what[key] = np.bytes_(value)
            for key, value in {
                "gain": 1.0, "offset": 0.0, "nodata": -9999000.0, "undetect": -8888000.0
            }.items():  # fmt: skip
                what[key] = value
            data = dataset.create_group("data1")
            data.create_dataset("data", data=values[::-1], compression="gzip")
    return path


def write_radolan(path: Path, product: str = "RW", minutes: int = 60) -> Path:
    """Write a composite of 900 x 900 cells in tenths of a mm; one cell clutter, some missing."""
    raw = np.full((900, 900), 0x2000 | 2500, np.uint16)
    raw[100:800, 100:800] = 0
    raw[300:400, 300:420] = 15
    raw[350, 350] = 120
    raw[360, 360] = 0x8000 | 15
    line = (
        f"{product}311950100000524BY1620142VS 3SW   2.29.1PR E-01INT{minutes:4d}GP 900x 900"
        "MS 31<boo,ros,emd,hnr,umd,pro,ess>"
    ).encode()
    path.write_bytes(line + b"\x03" + raw.astype("<u2").tobytes())
    return path


def write_grib(path: Path, *, count: int = 2, gap: float = -3.0, **keys: Any) -> Path:
    """Write messages two minutes apart of MRMS's parameter: -3 is no coverage, rows from north."""
    from nowcast.radar.maps.grib import load_eccodes

    eccodes = load_eccodes()

    with path.open("wb") as file:
        for number in range(count):
            message = eccodes.codes_grib_new_from_samples("regular_ll_sfc_grib2")
            for key, value in {
                "discipline": 209, "centre": 161, "parameterCategory": 6, "parameterNumber": 1,
                "dataDate": 20240601, "dataTime": 1200 + 2 * number, "Ni": NX, "Nj": NY,
                "latitudeOfFirstGridPointInDegrees": 45.0 + 0.5 * (NY - 1),
                "latitudeOfLastGridPointInDegrees": 45.0,
                "longitudeOfFirstGridPointInDegrees": 260.0,
                "longitudeOfLastGridPointInDegrees": 260.0 + 0.5 * (NX - 1),
                "iDirectionIncrementInDegrees": 0.5, "jDirectionIncrementInDegrees": 0.5,
                "decimalPrecision": 1, **keys,
            }.items():  # fmt: skip
                eccodes.codes_set(message, key, value)
            values = np.where(np.isnan(rain()), gap, rain())[::-1]
            eccodes.codes_set_values(message, values.reshape(-1).astype(np.float64))
            eccodes.codes_write(message, file)
            eccodes.codes_release(message)
    return path


def write_geotiff(
    path: Path,
    *,
    metadata: bool = True,
    reflectivity: bool = True,
    real: bool = False,
    epsg: int = 3067,
    unit: str = "",
) -> Path:
    """Write FMI's composite, reflectivity being 5 dBZ a mm h-1; ``unit`` is where GDAL has it."""
    import tifffile

    values = rain()[::-1]
    known = np.nan_to_num(values)
    if reflectivity:
        raw = np.where(known > 0, 2 * (5 * known + 32), 0).astype(np.uint8)
        raw[np.isnan(values)] = 255
        items = {
            "Quantity": "Reflectivity", "Gain": "0.5", "Offset": "-32.0", "Nodata": "255",
            "Undetect": "0", "Observation time": "202406011215",
        }  # fmt: skip
    else:
        raw = (100 * known).astype(np.uint16)
        raw[np.isnan(values)] = 65535
        items = {"Quantity": "Rain", "Gain": "0.01", "Offset": "0", "Nodata": "65535",
                 "Undetect": "0", "Observation time": "202406011215"}  # fmt: skip
    stated = ' unit="dBZ"' if reflectivity else ' unit="mm/h"'
    text = f'<Item name="UNITTYPE" role="unittype">{unit}</Item>' if unit else ""
    text += "".join(
        f'<Item name="{key}"{stated if key == "Quantity" and not unit else ""}>{value}</Item>'
        for key, value in items.items()
    )
    # Raster type area; the projected system of EPSG 3067 (TM35FIN).
    keys = (1, 1, 0, 3, 1024, 0, 1, 1, 1025, 0, 1, 1, 3072, 0, 1, epsg)
    tags = [
        (33550, "d", 3, (250.0, 250.0, 0.0), True),
        (33922, "d", 6, (0.0, 0.0, 0.0, 118_331.0, 7_907_751.0, 0.0), True),
        (34735, "H", len(keys), keys, True),
    ]
    if real:
        raw = values.astype(np.float32)
    if metadata:
        tags.append((42112, "s", 0, f"<GDALMetadata>{text}</GDALMetadata>", True))
    tifffile.imwrite(path, raw, compression="zlib", extratags=tags, metadata=None)
    return path
