"""The bright band: melting snow echoes more than the rain it becomes, and snow above it less.

The profile is a climatological one, that of Koistinen and Pohjola (2014, Journal of Applied
Meteorology and Climatology 53, 2282-2300) without their daily parts: as much as at the ground up
to 400 m below the freezing level, 7 dB more 100 m below it, as much again 200 m above it, and from
there on 4.7 dB less a kilometre. The beam sees its mean over its width. Showers have no such band:
echoes from 45 to 55 dBZ are changed less and less, and nothing is added beyond a cap.
"""

from __future__ import annotations

import csv
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import DataError
from nowcast.quality.attenuation import CAP
from nowcast.radar.polar.geometry import BEAMWIDTH
from nowcast.radar.polar.sweep import Sweep

# Metres above the freezing level, and dB against the rain at the ground there.
HEIGHTS, DECIBELS = (-400.0, -100.0, 200.0, 10_200.0), (0.0, 7.0, 0.0, -47.0)
# dBZ of rain that has a band, and of showers that have none.
STRATIFORM, CONVECTIVE = 45.0, 55.0
#: dB by which an echo is lowered, from which on it counts as one of the band.
COUNTED = 1.0
# Hours within which a freezing level of a series holds.
HOLDS = np.timedelta64(12, "h")
COLUMNS = ("time", "height")


def excess(sweep: Sweep, freezing: float) -> NDArray[np.float32]:
    """Return the dB by which echoes are above the rain at the ground, (rays, gates) float32.

    The sweep is cleaned and of a known site; ``freezing`` is the height of 0 degrees Celsius above
    the sea, metres.
    """
    assert sweep.dbz is not None
    geometry = sweep.geometry
    level = geometry.site.altitude - freezing
    at_antenna = np.interp(level, HEIGHTS, DECIBELS)
    seen = np.zeros(geometry.gates)
    # Gauss and Hermite's nodes over the Gaussian pattern of the power, there and back.
    nodes, weights = np.polynomial.hermite_e.hermegauss(7)
    for node, weight in zip(nodes, weights / weights.sum(), strict=True):
        angle = geometry.elevation + node * BEAMWIDTH / np.sqrt(16 * np.log(2))
        height = replace(geometry, elevation=angle).height_along(geometry.range)
        # No beam goes on below the ground.
        above = np.interp(np.maximum(height, 0) + level, HEIGHTS, DECIBELS) - at_antenna
        seen += weight * 10 ** (0.1 * above)
    profile = np.maximum(10 * np.log10(seen), -CAP).astype(np.float32)
    showers = np.clip((CONVECTIVE - sweep.dbz) / (CONVECTIVE - STRATIFORM), 0, 1)
    return np.where(np.isfinite(sweep.dbz), profile * showers, np.float32(0)).astype(np.float32)


def freezing_level(source: float | Path, time: np.datetime64) -> float:
    """Return the height of 0 degrees Celsius at a time, from a number or a CSV of times.

    Raises DataError when the file is no such series, or has no time within 12 hours.
    """
    if not isinstance(source, Path):
        return source
    times, heights = freezing_levels(source)
    if np.abs(times - time).min() > HOLDS:
        raise DataError(
            f"{source}: expected a freezing level within 12 hours of {time.astype('M8[m]')}Z, "
            f"found some from {times[0]}Z to {times[-1]}Z; add a line"
        )
    at = (times - times[0]) / np.timedelta64(1, "s")
    return float(np.interp((time - times[0]) / np.timedelta64(1, "s"), at, heights))


def freezing_levels(path: Path) -> tuple[NDArray[np.datetime64], NDArray[np.float64]]:
    """Return times and heights of a CSV; raise a DataError when it is none."""
    if not path.is_file():
        raise DataError(f"{path}: expected a file of freezing levels or metres, found none there")
    return _series(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=4)
def _series(path: Path, changed: int) -> tuple[NDArray[np.datetime64], NDArray[np.float64]]:
    """Return the times and heights of a file, read anew when it was changed."""
    with path.open(newline="", encoding="utf-8-sig") as lines:
        try:
            rows = sorted(
                (np.datetime64(row["time"].strip().removesuffix("Z"), "m"), float(row["height"]))
                for row in csv.DictReader(lines)
            )
            times, heights = (np.array(column) for column in zip(*rows, strict=True))
            if not np.isfinite(heights).all() or np.isnat(times).any():
                raise ValueError
        except (KeyError, ValueError, AttributeError, TypeError, UnicodeDecodeError):
            raise DataError(
                f"{path}: expected a CSV with the columns {', '.join(COLUMNS)}, lines such as "
                "2026-05-20T12:00Z,2400 in metres above the sea; mend it"
            ) from None
    return times, heights
