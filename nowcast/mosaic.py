"""Several radars in one map: merged by quality, and their calibrations compared."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nowcast.lagrangian.advection import carry, origins
from nowcast.lagrangian.motion import motion_field

Float = NDArray[np.float32]


class View(NamedTuple):
    """One radar's map, (y, x) float32: rain in mm h-1, NaN is missing, and quality above 0 to 1.

    The quality is NaN where the radar does not reach.
    """

    rain: Float
    quality: Float


def motion_between(earlier: Float, later: Float, seconds: float, spacing: float) -> Float:
    """Return the motion of rain (2, y, x) in cells per second of two maps of one radar.

    Maps are (y, x) in mm h-1, NaN is missing; ``spacing`` is metres between cells.
    """
    frames = np.stack([earlier, later])
    moved = motion_field(frames, spacing_km=spacing / 1000, step_minutes=seconds / 60)
    return np.asarray(moved / np.float32(seconds), np.float32)


def moved(view: View, motion: Float, seconds: float) -> View:
    """Return a view moved along a motion (2, y, x), cells per second, by (negative) seconds.

    Rain from beyond the radar's range is missing; the quality does not move.
    """
    steps = np.float32(seconds)
    return view._replace(rain=carry(view.rain, origins(motion * steps, 1.0)))


def merge(views: Sequence[View], how: str) -> View:
    """Return one map from several; NaN, with quality 0, where no radar has data.

    ``"quality"`` takes the mean of the rain rates weighted by quality, ``"maximum"`` the strongest
    rain, ``"nearest"`` the rain of the best quality. The quality is the best view's.
    """
    rain = np.stack([view.rain for view in views])
    quality = np.stack([view.quality for view in views])
    # Moved rain may have left the radar's range, where there is no quality.
    known = np.isfinite(rain) & np.isfinite(quality)
    rain, quality = np.where(known, rain, np.float32(np.nan)), np.where(known, quality, 0)
    best = quality.max(axis=0)
    if how == "quality":
        total = (np.where(known, rain, np.float32(0)) * quality).sum(axis=0)
        merged = total / np.where(best > 0, quality.sum(axis=0), np.float32(np.nan))
    elif how == "maximum":
        merged = np.fmax.reduce(rain)
    else:
        merged = np.take_along_axis(rain, quality.argmax(axis=0)[np.newaxis], axis=0)[0]
        merged[best == 0] = np.nan
    return View(merged.astype(np.float32, copy=False), best)


# Least geometric mean of two radars' rain rates, mm h-1, for a comparison; weaker rain is noise.
LEAST_RAIN = 0.5
# If two qualities differ by less than this factor, both radars see about the same part of a cell.
ALIKE = 2.0
# Classes of the differences in dB; values beyond count in the last class.
EDGES = np.linspace(-20.0, 20.0, 401)
# Least number of cells for a result.
FEWEST_CELLS = 500


class Difference(NamedTuple):
    """The difference in reflectivity between two radars, by their names.

    ``decibel`` is the median, over ``cells`` of all times, of the second's reflectivity minus the
    first's.
    """

    first: str
    second: str
    decibel: float
    cells: int


class Calibration:
    """Counts of reflectivity differences, class by class, for each pair of radars.

    ``exponent`` is b of Z = a R^b, the relation of the rain to reflectivity.
    """

    def __init__(self, exponent: float) -> None:
        self.exponent = exponent
        self.counts: dict[tuple[str, str], NDArray[np.int64]] = defaultdict(
            lambda: np.zeros(EDGES.size - 1, np.int64)
        )

    def add(self, views: Mapping[str, View]) -> None:
        """Compare maps of one time, given by the radars' names."""
        for first, second in combinations(sorted(views), 2):
            a, b = views[first], views[second]
            with np.errstate(invalid="ignore", divide="ignore"):
                quality = a.quality / b.quality
                alike = (quality < ALIKE) & (quality > 1 / ALIKE)
                both = alike & (a.rain * b.rain > LEAST_RAIN**2)
            ratio = np.log10(b.rain[both] / a.rain[both])
            decibel = np.clip(10 * self.exponent * ratio, EDGES[0], EDGES[-1])
            self.counts[first, second] += np.histogram(decibel, EDGES)[0]

    def differences(self) -> list[Difference]:
        """Return the differences of pairs with enough compared cells."""
        result = []
        for (first, second), counts in sorted(self.counts.items()):
            cells = int(counts.sum())
            if cells >= FEWEST_CELLS:
                at = int(np.searchsorted(np.cumsum(counts), cells / 2))
                middle = float(EDGES[at : at + 2].mean())
                result.append(Difference(first, second, round(middle, 2), cells))
        return result


def offsets(differences: list[Difference]) -> dict[str, float]:
    """Return the dB to add to each radar, of mean 0, so that differences vanish.

    It is a least-squares fit to the pairs; their weight is the root of their number of cells.

    Examples
    --------
    >>> offsets([Difference("a", "b", -2.0, 1000), Difference("b", "c", 1.0, 1000)])
    {'a': -1.0, 'b': 1.0, 'c': 0.0}
    """
    if not differences:
        return {}
    names = sorted({name for pair in differences for name in (pair.first, pair.second)})
    rows = np.zeros((len(differences) + 1, len(names)))
    wanted = np.zeros(len(differences) + 1)
    for row, pair in enumerate(differences):
        weight = np.sqrt(pair.cells)
        rows[row, names.index(pair.first)] = -weight
        rows[row, names.index(pair.second)] = weight
        wanted[row] = -weight * pair.decibel
    rows[-1] = 1.0
    solved = np.linalg.lstsq(rows, wanted, rcond=None)[0]
    return {name: round(float(value), 2) + 0.0 for name, value in zip(names, solved, strict=True)}
