"""The bright band: melting snow echoes more than the rain it becomes; the snow above echoes less.

The profile is the climatological one of Koistinen and Pohjola (2014, Journal of Applied Meteorology
and Climatology 53, 2282-2300) without its daily parts: the value at the ground up to 400 m below
the freezing level, 7 dB more 100 m below it, the value at the ground again 200 m above it, and from
there 4.7 dB less per kilometre. The beam averages the profile over its width. Showers have no such
band: the correction fades out from 45 to 55 dBZ, and additions are capped.
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

# Heights in metres above the freezing level, and dB there relative to rain at the ground.
HEIGHTS, DECIBELS = (-400.0, -100.0, 200.0, 10_200.0), (0.0, 7.0, 0.0, -47.0)
# dBZ up to which rain has a band, and from which showers have none.
STRATIFORM, CONVECTIVE = 45.0, 55.0
#: Least lowering in dB of an echo that counts as one of the bright band.
COUNTED = 1.0
# Hours for which a freezing level of a series is valid.
HOLDS = np.timedelta64(12, "h")
COLUMNS = ("time", "height")


def excess(sweep: Sweep, freezing: float) -> NDArray[np.float32]:
    """Return the excess in dB of echoes over rain at the ground, (rays, gates) float32.

    The sweep has to be cleaned and its site known; ``freezing`` is the height of 0 degrees Celsius
    above the sea in metres.
    """
    assert sweep.dbz is not None
    geometry = sweep.geometry
    level = geometry.site.altitude - freezing
    at_antenna = np.interp(level, HEIGHTS, DECIBELS)
    seen = np.zeros(geometry.gates)
    # Gauss-Hermite nodes over the Gaussian two-way pattern of the power.
    nodes, weights = np.polynomial.hermite_e.hermegauss(7)
    for node, weight in zip(nodes, weights / weights.sum(), strict=True):
        angle = geometry.elevation + node * BEAMWIDTH / np.sqrt(16 * np.log(2))
        height = replace(geometry, elevation=angle).height_along(geometry.range)
        # The beam ends at the ground.
        above = np.interp(np.maximum(height, 0) + level, HEIGHTS, DECIBELS) - at_antenna
        seen += weight * 10 ** (0.1 * above)
    profile = np.maximum(10 * np.log10(seen), -CAP).astype(np.float32)
    showers = np.clip((CONVECTIVE - sweep.dbz) / (CONVECTIVE - STRATIFORM), 0, 1)
    return np.where(np.isfinite(sweep.dbz), profile * showers, np.float32(0)).astype(np.float32)


def freezing_level(source: float | Path, time: np.datetime64) -> float:
    """Return the height of 0 degrees Celsius at a time, from a number or a CSV of times.

    Raises DataError if the file is no such series, or has no time within 12 hours.
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
    """Return times and heights of a CSV; raise a DataError if it is invalid."""
    if not path.is_file():
        raise DataError(f"{path}: expected a file of freezing levels or metres, found none there")
    return _series(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=4)
def _series(path: Path, changed: int) -> tuple[NDArray[np.datetime64], NDArray[np.float64]]:
    """Return the times and heights of a file, which is read again after a change."""
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
