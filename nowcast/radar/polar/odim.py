"""ODIM_H5 polar volumes and single sweeps (Michelson et al., OPERA data information model)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from daskdl.errors import DataError
from nowcast.radar.attributes import (
    REFLECTIVITY,
    check_measured,
    datasets,
    number,
    quantity,
    read_data,
    read_time,
    says,
    station,
    text,
    text_of,
    the_only,
)
from nowcast.radar.header import Format, Header, Site, compare_times
from nowcast.radar.polar.cuts import lowest_cuts
from nowcast.radar.polar.sweep import (
    COHERENCE,
    CORRELATION,
    MOST_GATES,
    PHASE,
    VELOCITY,
    Sweep,
    of_nyquist,
)

# From version 2.4 on lengths are in metres; before, the start of the range alone was in kilometres.
METRES_SINCE = (2, 4)
#: No radar is blind for longer, in metres; this detects files that mix up metres and kilometres.
FARTHEST_START = 50_000.0


def read_header(path: Path, name: str) -> Header:
    """Return the header of the ODIM_H5 file at ``path``, called ``name`` in it."""
    with h5py.File(path, "r") as file:
        times = [_start(file[key]) for key in datasets(file) if "what" in file[key]]
        if not times:
            raise DataError(f"{name}: expected at least one dataset with a start time, found none")
        date, time = (text(file["what"], key) for key in ("date", "time"))
        if date and time:
            compare_times("what/time", read_time(date, time), min(times))
        check_measured(file)
        return Header(
            path=name,
            format=Format.ODIM,
            station=station(text(file["what"], "source")),
            times=(min(times),),
            site=_site(file),
            single_sweep=text(file["what"], "object") == "SCAN",
        )


def read_sweeps(path: Path, cuts: int, moment: str | None) -> list[Sweep]:
    """Return the sweeps of the ``cuts`` lowest elevations."""
    with h5py.File(path, "r") as file:
        # A vertical section has another angle, and is no map.
        turns = [
            file[key]
            for key in datasets(file)
            if "where" in file[key] and "elangle" in file[key]["where"].attrs
        ]
        if not turns:
            raise DataError("expected sweeps with an elevation (elangle), found none")
        turns = _sound(file, turns)
        echoes = [turn for turn in turns if _moment(turn, (moment,) if moment else REFLECTIVITY)]
        # Unless moments are in files of their own, sweeps of velocity alone are no map.
        turns = echoes or turns
        elevations = [_elevation(turn) for turn in turns]
        metres = version(file) >= METRES_SINCE
        return [
            _read_sweep(turns[i], elevations[i], _site(file), metres, moment)
            for cut in lowest_cuts(elevations, cuts)
            for i in cut
        ]


def _sound(file: Any, turns: Sequence[Any]) -> list[Any]:
    """Return the turns without a reported malfunction, at least one."""
    sound = [turn for turn in turns if not says("malfunc", turn, file)]
    if not sound:
        note = text(turns[0]["how"], "radar_msg") if "how" in turns[0] else ""
        raise DataError(
            f"expected sweeps of a radar that works, found how/malfunc True{note and f' ({note})'}"
            "; leave the file out"
        )
    return sound


def _read_sweep(
    turn: Any, elevation: float, site: Site | None, metres: bool, moment: str | None
) -> Sweep:
    reflectivity = _moment(turn, (moment,) if moment else REFLECTIVITY)
    coherent = _moment(turn, COHERENCE)
    moving = _moment(turn, VELOCITY) if coherent is None else None
    others = (_moment(turn, CORRELATION), _moment(turn, PHASE), coherent, moving)
    moments = [
        None if moment is None else read_data(moment, turn, MOST_GATES)
        for moment in (reflectivity, *others)
    ]
    measured = next((moment for moment in moments if moment is not None), None)
    if measured is None:
        rays, gates = int(number(turn["where"], "nrays")), int(number(turn["where"], "nbins"))
    else:
        rays, gates = measured.shape
        stated = tuple(int(number(turn["where"], key)) for key in ("nrays", "nbins"))
        if stated != measured.shape:
            raise DataError(
                f"expected {stated[0]} rays (nrays) of {stated[1]} gates (nbins), found numbers of "
                f"{rays} x {gates}"
            )
    azimuth = _azimuth(turn, rays)
    order = np.argsort(azimuth, kind="stable")
    step = number(turn["where"], "rscale")
    start = number(turn["where"], "rstart", 0.0) * (1.0 if metres else 1000.0)
    if start > FARTHEST_START:
        raise DataError(
            f"expected rays that begin within {FARTHEST_START / 1000:g} km of the radar, found "
            f"rstart {number(turn['where'], 'rstart'):g} in {'m' if metres else 'km'}"
            "; write rstart in that unit"
        )
    for other in moments[1:]:
        if other is not None:
            other[np.isinf(other)] = np.nan
    dbz, rhohv, phidp, coherence, velocity = (
        None if moment is None else moment[order] for moment in moments
    )
    nyquist = number(turn["how"], "NI", 0.0) if "how" in turn else 0.0
    return Sweep(
        elevation=elevation,
        azimuth=azimuth[order],
        range=start + step * (np.arange(gates, dtype=np.float64) + 0.5),
        time=_start(turn),
        site=site,
        dbz=dbz,
        rhohv=rhohv,
        phidp=phidp,
        coherence=coherence,
        velocity=of_nyquist(velocity, nyquist),
    )


def _moment(turn: Any, names: Sequence[str]) -> Any:
    """Return the data group of a sweep's first of the named moments; None without one."""
    groups: dict[str, list[Any]] = {}
    for key in datasets(turn, "data"):
        if "data" in turn[key]:
            groups.setdefault(quantity(turn[key], turn), []).append(turn[key])
    return next((the_only(groups[name], name) for name in names if name in groups), None)


def _azimuth(turn: Any, rays: int) -> NDArray[np.float64]:
    """Return the middle of each ray in degrees, from ``how`` or else from north on.

    Without angles of rays ``how/astart`` is the start of the first ray.
    """
    start, stop = _edges(turn)
    if start.shape != (rays,):
        first = number(turn["how"], "astart", 0.0) if "how" in turn else 0.0
        return (first + (np.arange(rays, dtype=np.float64) + 0.5) * (360.0 / rays)) % 360.0
    if stop.shape != (rays,):
        # Without, a ray ends where its neighbour begins: the next one, or the one before in a turn
        # counter-clockwise (antspeed or rpm below 0) whose rays were put in order from north on.
        rising = np.count_nonzero((np.diff(start) + 180.0) % 360.0 > 180.0) > (rays - 1) / 2
        stop = np.roll(start, 1 if _counterclockwise(turn) and rising else -1)
    # The short way round: an antenna that turns counter-clockwise begins at the larger angle.
    width = 180.0 - (180.0 - (stop - start)) % 360.0
    return (start + width / 2.0) % 360.0


def _edges(turn: Any) -> list[NDArray[np.float64]]:
    """Return the angles where rays start and stop, (nrays,) each; empty where not stated.

    Version 2.0 has them in one text, ``how/azangles``: "0:1,1:2,"; Denmark calls it azangels.
    """
    how = turn["how"].attrs if "how" in turn else {}
    stated = [np.asarray(how.get(key, ())) for key in ("startazA", "stopazA")]
    pairs = text_of(how.get("azangles", how.get("azangels", ""))).strip(",")
    if not stated[0].size and re.fullmatch(r"[^:,]+:[^:,]+(,[^:,]+:[^:,]+)*", pairs):
        with suppress(ValueError):
            stated = list(np.array(re.split("[:,]", pairs), np.float64).reshape(-1, 2).T)
    return [
        (angles if angles.dtype.kind in "iuf" else np.empty(0)).astype(np.float64)
        for angles in stated
    ]


def _counterclockwise(turn: Any) -> bool:
    return "how" in turn and any(
        number(turn["how"], key, 0.0) < 0 for key in ("antspeed", "rpm") if key in turn["how"].attrs
    )


def _elevation(turn: Any) -> float:
    """Return the elevation in degrees: the median of the measured ones, or the set one.

    Some antennas turn a tenth of a degree off the set angle.
    """
    how = turn["how"].attrs if "how" in turn else {}
    start, stop = (np.asarray(how.get(key, ())) for key in ("startelA", "stopelA"))
    if start.size and start.shape == stop.shape and start.dtype.kind == stop.dtype.kind == "f":
        angles = (start + stop) / 2.0
    else:
        angles = np.asarray(how.get("elangles", ()))
    if angles.size and angles.dtype.kind == "f" and np.isfinite(angles).all():
        return float(np.median(angles))
    return number(turn["where"], "elangle")


def _site(file: Any) -> Site | None:
    if "where" not in file:
        return None
    return Site.known(*(number(file["where"], key, np.nan) for key in ("lat", "lon", "height")))


def version(file: Any) -> tuple[int, int]:
    """Return the version of the data model that a file states; by default (2, 0)."""
    match = re.search(r"V(\d+)_(\d+)", text(file, "Conventions"))
    return (int(match[1]), int(match[2])) if match else (2, 0)


def _start(turn: Any) -> np.datetime64:
    attributes = turn["what"]
    return read_time(text(attributes, "startdate"), text(attributes, "starttime"))
