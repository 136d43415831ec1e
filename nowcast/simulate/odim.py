"""Polar volumes of reflectivity in ODIM_H5.

OPERA Data Information Model for HDF5, version 2.3 (EUMETNET OPERA, 2019).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nowcast.replacing import beside

#: Reflectivity is stored as one byte: dBZ = GAIN * value + OFFSET.
GAIN, OFFSET, UNDETECT, NODATA = 0.5, -32.0, 0, 255
#: Seconds that one turn of the antenna takes.
TURN = 20


def write_volume(
    path: Path,
    sweeps: Sequence[tuple[float, NDArray[np.floating]]],
    *,
    time: datetime,
    site: tuple[float, float, float],
    gate_length: float,
    source: str,
    how: Mapping[str, Any],
) -> None:
    """Write one volume; a file that was there is replaced by a whole one.

    Parameters
    ----------
    path : path
    sweeps : sequence of (elevation in degrees, dBZ (rays, gates))
        -inf where nothing was detected, NaN where nothing was measured.
    time : datetime
        UTC, nominal and start of the first sweep.
    site : (latitude, longitude, height above the sea in metres)
    gate_length : float
        Metres.
    source : str
        ODIM's ``/what/source``, e.g. ``"NOD:xxsim,CMT:simulated"``.
    how : mapping
        Attributes of ``/how``.
    """
    import h5py

    with beside(path) as temporary, h5py.File(temporary, "w") as file:
        _attributes(file, {"Conventions": "ODIM_H5/V2_3"})
        stamp = {"date": f"{time:%Y%m%d}", "time": f"{time:%H%M%S}"}
        what = {"object": "PVOL", "version": "H5rad 2.3", "source": source, **stamp}
        _attributes(file.create_group("what"), what)
        _attributes(
            file.create_group("where"), dict(zip(("lat", "lon", "height"), site, strict=True))
        )
        _attributes(file.create_group("how"), how)
        for number, (elevation, dbz) in enumerate(sweeps):
            start = time + timedelta(seconds=number * TURN)
            _write_sweep(
                file.create_group(f"dataset{number + 1}"), elevation, dbz, start, gate_length
            )


def _write_sweep(
    group: Any, elevation: float, dbz: NDArray[np.floating], start: datetime, gate_length: float
) -> None:
    end = start + timedelta(seconds=TURN)
    what = {
        "product": "SCAN",
        "startdate": f"{start:%Y%m%d}",
        "starttime": f"{start:%H%M%S}",
        "enddate": f"{end:%Y%m%d}",
        "endtime": f"{end:%H%M%S}",
    }
    where = {
        "elangle": elevation,
        "nrays": dbz.shape[0],
        "nbins": dbz.shape[1],
        "rstart": 0.0,
        "rscale": gate_length,
        "a1gate": 0,
    }
    _attributes(group.create_group("what"), what)
    _attributes(group.create_group("where"), where)
    data = group.create_group("data1")
    coding = {
        "quantity": "DBZH",
        "gain": GAIN,
        "offset": OFFSET,
        "nodata": float(NODATA),
        "undetect": float(UNDETECT),
    }
    _attributes(data.create_group("what"), coding)
    array = data.create_dataset(
        "data", data=quantise(dbz), chunks=dbz.shape, compression="gzip", compression_opts=4
    )
    _attributes(array, {"CLASS": "IMAGE", "IMAGE_VERSION": "1.2"})


def quantise(dbz: NDArray[np.floating]) -> NDArray[np.uint8]:
    """Return the bytes that stand for reflectivities in dBZ."""
    heard = np.isfinite(dbz)
    steps = np.rint((np.where(heard, dbz, 0.0) - OFFSET) / GAIN).clip(UNDETECT + 1, NODATA - 1)
    values = np.where(heard, steps, UNDETECT).astype(np.uint8)
    values[np.isnan(dbz)] = NODATA
    return values


def _attributes(target: Any, values: Mapping[str, Any]) -> None:
    for name, value in values.items():
        target.attrs[name] = np.bytes_(value) if isinstance(value, str) else value
