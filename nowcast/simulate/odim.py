"""Polar volumes of reflectivity and other moments in ODIM_H5.

OPERA Data Information Model for HDF5, version 2.3 (EUMETNET OPERA, 2019). It requires attributes as
strings of fixed length that end with a null, 64-bit integers and 64-bit floats.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import needed
from daskdl.files import replacing

# Moments are stored as one byte: value = gain * byte + offset.
GAIN, OFFSET, UNDETECT, NODATA = 0.5, -32.0, 0, 255
CODING = {
    "DBZH": (GAIN, OFFSET),
    "DBZH_TRUE": (GAIN, OFFSET),
    "RHOHV": (0.004, 0.0),
    "PHIDP": (1.5, -1.5),
    "SQIH": (0.004, 0.0),
    "FALSE_ECHO": (1.0, -1.0),
}


@dataclass(frozen=True)
class PolarSweep:
    """One turn of the antenna, from north.

    Examples
    --------
    >>> dbz = np.full((360, 100), -np.inf)
    >>> PolarSweep(0.5, datetime(2021, 3, 4, 12), 20.0, 500.0, dbz).dbz.shape
    (360, 100)
    """

    elevation: float  #: Degrees.
    start: datetime  #: UTC.
    turn: float  #: Seconds.
    gate_length: float  #: Metres.
    #: (rays, gates): reflectivity; minus infinity where nothing was detected, NaN where nothing was
    #: measured.
    dbz: NDArray[np.floating]
    #: Unambiguous velocity, m/s; readers expect it though there are no velocities.
    nyquist: float = 8.0
    #: Moments besides the reflectivity, by their names in `CODING`, (rays, gates).
    others: Mapping[str, NDArray[Any]] = field(default_factory=dict)


def write_odim_volume(
    path: Path,
    sweeps: Sequence[PolarSweep],
    *,
    time: datetime,
    site: tuple[float, float, float],
    source: str,
    how: Mapping[str, Any],
) -> None:
    """Write one volume; an existing file is replaced in one step.

    Sweeps are in the order in which they were made; ``time`` is nominal, UTC; the site is
    latitude, longitude in degrees and height of the antenna above the sea in metres; ``source`` is
    ODIM's ``/what/source``, and ``how`` has the attributes of ``/how``.

    Examples
    --------
    >>> noon = datetime(2021, 3, 4, 12)
    >>> sweep = PolarSweep(0.5, noon, turn=20.0, gate_length=500.0, dbz=np.full((36, 10), 20.0))
    >>> write_odim_volume(
    ...     Path("a.h5"), [sweep], time=noon, site=(51.5, 4.2, 33.0), source="PLC:Nowhere", how={}
    ... )
    """
    with needed("writing ODIM_H5 files needs h5py ({error}); pip install 'daskdl[nowcast]'"):
        import h5py

    with replacing(path) as temporary, h5py.File(temporary, "w") as file:
        _attributes(file, {"Conventions": "ODIM_H5/V2_3"})
        attributes = {
            "object": "PVOL",
            "version": "H5rad 2.3",
            **_stamp("", time),
            "source": source,
        }
        _attributes(file.create_group("what"), attributes)
        where = dict(zip(("lat", "lon", "height"), map(float, site), strict=True))
        _attributes(file.create_group("where"), where)
        _attributes(file.create_group("how"), how)
        for number, sweep in enumerate(sweeps, start=1):
            _write_sweep(file.create_group(f"dataset{number}"), sweep, number, len(sweeps))


def _write_sweep(group: Any, sweep: PolarSweep, number: int, count: int) -> None:
    rays, gates = sweep.dbz.shape
    end = sweep.start + timedelta(seconds=sweep.turn)
    described = {"product": "SCAN", **_stamp("start", sweep.start), **_stamp("end", end)}
    where = {
        "elangle": float(sweep.elevation),
        "nrays": rays,
        "nbins": gates,
        "rstart": 0.0,
        "rscale": float(sweep.gate_length),
        "a1gate": 0,
    }
    edges = np.arange(rays + 1) / rays
    began = sweep.start.replace(tzinfo=UTC).timestamp()
    how = {
        "scan_index": number,
        "scan_count": count,
        "NI": sweep.nyquist,
        "astart": 0.0,
        "elangles": np.full(rays, sweep.elevation),
        "startazA": 360.0 * edges[:-1],
        "stopazA": 360.0 * edges[1:],
        "startazT": began + sweep.turn * edges[:-1],
        "stopazT": began + sweep.turn * edges[1:],
    }
    for name, values in (("what", described), ("where", where), ("how", how)):
        _attributes(group.create_group(name), values)
    for place, (name, moment) in enumerate({"DBZH": sweep.dbz, **sweep.others}.items(), start=1):
        gain, offset = CODING[name]
        data = group.create_group(f"data{place}")
        coding = {"quantity": name, "gain": gain, "offset": offset}
        _attributes(
            data.create_group("what"),
            coding | {"nodata": float(NODATA), "undetect": float(UNDETECT)},
        )
        array = data.create_dataset(
            "data",
            data=quantise(moment, gain, offset),
            chunks=(rays, gates),
            compression="gzip",
            compression_opts=3,
        )
        _attributes(array, {"CLASS": "IMAGE", "IMAGE_VERSION": "1.2"})


def quantise(moment: NDArray[Any], gain: float = GAIN, offset: float = OFFSET) -> NDArray[np.uint8]:
    """Return the bytes that encode a moment, dBZ by default, clipped to their range."""
    heard = np.isfinite(moment)
    steps = np.rint((np.where(heard, moment, 0.0) - offset) / gain).clip(UNDETECT + 1, NODATA - 1)
    values = np.where(heard, steps, UNDETECT).astype(np.uint8)
    values[np.isnan(moment)] = NODATA
    return values


def _stamp(prefix: str, time: datetime) -> dict[str, str]:
    return {f"{prefix}date": f"{time:%Y%m%d}", f"{prefix}time": f"{time:%H%M%S}"}


def _attributes(target: Any, values: Mapping[str, Any]) -> None:
    import h5py

    for name, value in values.items():
        if not isinstance(value, str):
            target.attrs[name] = value
            continue
        # h5py's own strings are padded with nulls and need not end with one.
        text = value.encode("ascii")
        kind = h5py.h5t.C_S1.copy()
        kind.set_size(len(text) + 1)
        space = h5py.h5s.create(h5py.h5s.SCALAR)
        attribute = h5py.h5a.create(target.id, name.encode("ascii"), kind, space)
        attribute.write(np.array(text, f"S{len(text) + 1}"), kind)
