"""Small ODIM_H5 files with a block of echo, and their copies as CfRadial."""

from __future__ import annotations

import warnings
from datetime import datetime, timedelta
from pathlib import Path

import h5py
import numpy as np

RAYS, GATES = 72, 40


def write_sweep(
    path: Path,
    time: str = "130000",
    *,
    quantity: str = "DBZH",
    raw: np.ndarray | None = None,
    kind: str = "PVOL",
    elevations: tuple[float, ...] = (0.5,),
    site: tuple[float, float, float] = (51.0, 5.0, 100.0),
    source: str = "WMO:06475,NOD:behel",
    nodata: float = 255.0,
) -> Path:
    """Write a volume with a sweep at each elevation.

    Raw 0 is undetect, 255 nodata, dBZ = raw/2 - 32; the echo of sweep n, from 0, is 30 + n dBZ.
    """
    with h5py.File(path, "w") as file:
        file.attrs["Conventions"] = np.bytes_("ODIM_H5/V2_3")
        what = file.create_group("what").attrs
        for key, value in {
            "object": kind, "version": "H5rad 2.3", "date": "20200207", "time": time,
            "source": source,
        }.items():  # fmt: skip
            what[key] = np.bytes_(value)
        where = file.create_group("where").attrs
        where["lat"], where["lon"], where["height"] = site
        for number, elevation in enumerate(elevations, start=1):
            sweep = file.create_group(f"dataset{number}")
            attributes = sweep.create_group("what").attrs
            attributes["product"] = np.bytes_("SCAN")
            start = datetime.strptime(f"20200207{time}", "%Y%m%d%H%M%S")
            for key, moment in (("start", start), ("end", start + timedelta(seconds=30))):
                attributes[f"{key}date"] = np.bytes_(f"{moment:%Y%m%d}")
                attributes[f"{key}time"] = np.bytes_(f"{moment:%H%M%S}")
            where = sweep.create_group("where").attrs
            where["elangle"], where["a1gate"] = elevation, 0
            where["nbins"], where["nrays"] = GATES, RAYS
            where["rstart"], where["rscale"] = 0.0, 1000.0
            moment = sweep.create_group("data1")
            attributes = moment.create_group("what").attrs
            attributes["quantity"] = np.bytes_(quantity)
            gain, offset = (0.5, -32.0) if quantity == "DBZH" else (1 / 254, -1 / 254)
            for key, value in {
                "gain": gain, "offset": offset, "nodata": nodata, "undetect": 0.0
            }.items():  # fmt: skip
                attributes[key] = value
            if raw is None:
                values = np.zeros((RAYS, GATES), np.uint8)
                values[10:20, 10:20] = 124 + 2 * (number - 1)
                values[40, 30] = 255
            else:
                values = raw
            moment.create_dataset("data", data=values, compression="gzip")
    return path


def write_cfradial(path: Path, source: Path, version: int = 1, count: int = 1) -> Path:
    """Write the first ``count`` sweeps of an ODIM file by xradar's exporter."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import xradar

        tree = xradar.io.open_odim_datatree(source, sweep=[f"sweep_{i}" for i in range(count)])
        if version == 1:
            xradar.io.to_cfradial1(tree.load(), str(path), calibs=False)
        else:
            xradar.io.to_cfradial2(tree.load(), str(path), engine="netcdf4")
        tree.close()
    return path
