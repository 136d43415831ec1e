"""Probabilities of exceedance from the ranks of an expected field: the rank margin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import SettingsError
from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.team import over_rows
from nowcast.lagrangian.blocks import Surroundings
from nowcast.lagrangian.frames import DRY_BELOW, DRY_DECIBEL

Float = NDArray[np.float32]

#: Rain rates in mm h-1 whose exceedance is forecast unless others are asked for.
THRESHOLDS = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0)
#: No yes is said at a lower probability: it would be wrong 19 times of 20.
LEAST_CUT = 0.05
#: Most area of yes over the area expected to be hit; see docs/measurements/forecast_rules.md.
MOST_YES = 1.1
#: Lead time in minutes to which the first number of each pair of a `MarginTable` belongs.
AT_MINUTES = 30.0
#: Steps among which the best cut is looked for.
CLASSES = 4096
#: Lead times in minutes beyond which the numbers stay as they are.
SHORTEST, LONGEST = 5.0, 120.0


@dataclass(frozen=True)
class MarginTable:
    """Numbers that turn rank margins into probabilities, by threshold and smooth in lead time.

    The probability that rain reaches a threshold is logistic(slope * sure * margin + wet * logit(w)
    + offset + dry * d + near * logit(s) + wide * logit(S)). The margin is the logit of the pixel's
    rank in the expected field less the logit of 1 - w, and w the fraction of the last frame, moved,
    that reaches the threshold: above 0 where the field matched to that frame's distribution says
    yes; "sure" is how well its motion is known (`nowcast.lagrangian.cascade`); d is how far the
    expected field lies below the lightest rain, 1 where it is dry all around; s and S are the
    fractions near the pixel and farther around it (`nowcast.lagrangian.blocks`). Ranks and
    fractions, unlike rain rates, mean the same to radars with other hardware, other climates and
    other errors.
    """

    thresholds: tuple[float, ...]  #: Rain rates in mm h-1, increasing.
    #: One pair a threshold: the slope at `AT_MINUTES`, and the factor by which it changes with each
    #: doubling of the lead time.
    slope: tuple[tuple[float, float], ...]
    #: One pair a threshold: the number at `AT_MINUTES`, and what each doubling adds. Without pairs,
    #: surroundings count nothing.
    wet: tuple[tuple[float, float], ...]
    offset: tuple[tuple[float, float], ...]
    dry: tuple[tuple[float, float], ...]
    near: tuple[tuple[float, float], ...] = ()
    wide: tuple[tuple[float, float], ...] = ()

    def at(self, thresholds: Sequence[float], minutes: float) -> NDArray[np.float64]:
        """Return slope, wet, offset, dry, near and wide (threshold, 6) at a lead time.

        Between the table's thresholds the numbers are linear in the logarithm of the rain rate;
        beyond them they equal the numbers of the first and the last.
        """
        doublings = np.log2(np.clip(minutes, SHORTEST, LONGEST) / AT_MINUTES)
        at = np.log(np.asarray(thresholds, np.float64))
        known = np.log(self.thresholds)
        numbers = [[first * change**doublings for first, change in self.slope]] + [
            [first + doublings * change for first, change in pairs or ((0, 0),) * len(known)]
            for pairs in (self.wet, self.offset, self.dry, self.near, self.wide)
        ]
        return np.stack([np.interp(at, known, values) for values in numbers], axis=1)


def exceedance(
    expected: Float,
    rank: Float,
    moved: Float,
    thresholds: Sequence[float],
    minutes: float,
    table: MarginTable,
    *,
    spacing_km: float,
    sure: Float | None = None,
    shift: Float | None = None,
) -> Float:
    """Return the probability (threshold, y, x) that rain reaches each threshold.

    - ``expected`` (y, x): the expected field at the lead time, in dB rain.
    - ``rank`` (y, x): its ranks, see `nowcast.lagrangian.ranks.ranks`.
    - ``moved`` (y, x): the last frame carried to the lead time, mm h-1; known where ``rank`` is.
    - ``thresholds``: in mm h-1, increasing.
    - ``sure`` (y, x): factor of margins, see `nowcast.lagrangian.cascade.Arrival`.
    - ``shift`` (threshold, y, x): added to the logits of the probabilities, such as a network's
      correction.
    - returns (threshold, y, x): from 0 to 1, never larger at a larger threshold; NaN where ``rank``
      is.
    """
    at = table.at(thresholds, minutes)
    numbers, least = coefficients(rank, moved, at, thresholds)
    cells, side = around(moved, thresholds, at, spacing_km)
    if shift is None:
        shift = np.empty((0, 0, 0), np.float32)
    out = np.empty((len(thresholds), *rank.shape), np.float32)
    sure = np.ones_like(rank) if sure is None else sure
    rows = np.arange(len(rank))
    over_rows(
        _logistic, (rank, sure, dryness(expected), rows), 64, out, numbers, least, shift, cells,
        float(side),
    )  # fmt: skip
    return out


def coefficients(
    rank: Float, moved: Float, numbers: NDArray[np.float64], thresholds: Sequence[float]
) -> tuple[Float, np.float32]:
    """Return the coefficients of logits by a pixel's rank and dryness, and the least rank.

    - ``rank``, ``moved`` (y, x): as in `exceedance`.
    - ``numbers`` (threshold, 6): from `MarginTable.at`.
    - ``thresholds``: in mm h-1.
    - returns ``coefficients`` (threshold, 4): of the logit of the rank and 1, both times how sure
      motion is, of 1, and of the dryness.
    - returns ``least``: ranks are kept this far from 0 and 1.
    """
    known = np.isfinite(rank) & np.isfinite(moved)
    count = max(int(known.sum()), 1)
    least = 0.5 / count
    values = moved[known]
    made = np.empty((len(thresholds), 4), np.float32)
    for row, threshold, (slope, wet, offset, dry, *_) in zip(
        made, thresholds, numbers, strict=True
    ):
        share = np.count_nonzero(values >= np.float32(threshold)) / count
        odds = logit(np.clip(share, least, 1 - least))
        row[:] = slope, slope * odds, wet * odds + offset, dry
    return made, np.float32(least)


def around(
    moved: Float, thresholds: Sequence[float], numbers: NDArray[np.float64], spacing_km: float
) -> tuple[Float, int]:
    """Return the surroundings' terms of logits, (threshold, cell_y, cell_x), and a cell's side.

    - ``moved`` (y, x): the last frame carried to the lead time, mm h-1.
    - ``thresholds``: in mm h-1.
    - ``numbers`` (threshold, 6): from `MarginTable.at`.
    - returns ``added`` (threshold, cell_y, cell_x).
    - returns ``side``: pixels along the side of a cell.
    """
    surroundings = Surroundings.of(moved, thresholds, spacing_km)
    near, wide = numbers[:, 4:].T.astype(np.float32)[..., np.newaxis, np.newaxis]
    return near * surroundings.near + wide * surroundings.wide, surroundings.side


def dryness(expected: Float) -> Float:
    """Return how far an expected field in dB rain lies below the lightest rain: 1 if wholly dry."""
    lightest = np.float32(10 * np.log10(DRY_BELOW))
    return np.maximum((lightest - expected) / (lightest - np.float32(DRY_DECIBEL)), np.float32(0))


def best_cut(probability: Float) -> float:
    """Return the probability from which on to say yes, for the largest CSI that is expected.

    If yes is said wherever the probability is at least c, the expected hits are the sum of these
    probabilities, and the expected events the sum of all. With little skill the largest CSI would
    need a yes over far more area than rain is expected: so the area of yes is at most `MOST_YES`
    times the expected area, and the probability at least `LEAST_CUT`.
    """
    known = probability[np.isfinite(probability)]
    most = float(known.max()) if known.size else 0.0
    if most <= 0:
        return 1.0
    width = most / CLASSES
    counts, sums = _classes(known, np.float32(1 / width), CLASSES)
    hits = np.cumsum(sums[::-1])
    yes = np.cumsum(counts[::-1])
    csi = hits / np.maximum(yes + hits[-1] - hits, 1e-30)
    csi[1:][yes[1:] > MOST_YES * hits[-1]] = 0
    return float(max((CLASSES - 1 - np.argmax(csi)) * width, known.min(), LEAST_CUT))


def logit(p: NDArray[np.floating] | float) -> NDArray[np.float64]:
    """Return log(p / (1 - p))."""
    p = np.asarray(p, np.float64)
    return np.log(p / (1 - p))


def check_table(table: MarginTable) -> None:
    """Raise SettingsError unless every threshold of a table has its four pairs."""
    always = (table.thresholds, table.slope, table.wet, table.offset, table.dry)
    counts = {len(pairs) for pairs in (*always, table.near or always[0], table.wide or always[0])}
    if len(counts) != 1:
        raise SettingsError(
            f"MarginTable: expected as many pairs as thresholds, found {sorted(counts)}."
        )


@jit
def _classes(values, per_class, classes):
    """Count and add up probabilities in even classes from 0 on."""
    counts, sums = np.zeros(classes, np.int64), np.zeros(classes)
    for value in values:
        k = min(int(value * per_class), classes - 1)
        counts[k] += 1
        sums[k] += value
    return counts, sums


@jit
def _logistic(rank, sure, dry, rows, out, numbers, least, shift, around, side):
    one = np.float32(1)
    height, width = around.shape[1:]
    across = np.empty((width, len(numbers)), np.float32)
    for i in range(rank.shape[0]):
        row = rows[i]
        # What cells say is interpolated linearly to pixels, first along the column of cells.
        y = min(max((row + 0.5) / side - 0.5, 0.0), height - 1.0)
        above = min(int(y), max(height - 2, 0))
        below, part = min(above + 1, height - 1), np.float32(y - above)
        for cell in range(width):
            for k in range(len(numbers)):
                upper = around[k, above, cell]
                across[cell, k] = upper + part * (around[k, below, cell] - upper)
        for j in range(rank.shape[1]):
            r = rank[i, j]
            if not np.isfinite(r):
                for k in range(len(numbers)):
                    out[k, row, j] = np.nan
                continue
            r = min(max(r, least), one - least)
            odds = np.log(r / (one - r))
            x = min(max((j + 0.5) / side - 0.5, 0.0), width - 1.0)
            left = min(int(x), max(width - 2, 0))
            right, part = min(left + 1, width - 1), np.float32(x - left)
            lowest = one
            for k in range(len(numbers)):
                z = sure[i, j] * (numbers[k, 0] * odds + numbers[k, 1])
                z += numbers[k, 2] + numbers[k, 3] * dry[i, j]
                z += across[left, k] + part * (across[right, k] - across[left, k])
                if len(shift):
                    z += shift[k, row, j]
                p = one / (one + np.exp(-z))
                lowest = min(lowest, p)
                out[k, row, j] = lowest


#: Numbers of `SHIPPED`, fitted by ``python -m ci.fit_probabilities`` to real events. A row has a
#: rain rate in mm h-1, then its pairs of slope, wet, offset, dry, near and wide.
ROWS = (
    (0.1, 0.408, 0.497, 0.13, 0.06, 0.567, 0.054, -1.565, -0.14, 0.243, -0.259, 0.425, 0.181),
    (0.5, 0.942, 0.561, 0.094, 0.115, 0.077, 0.24, -1.492, -0.039, 0.181, -0.226, 0.333, 0.2),
    (1.0, 0.864, 0.609, 0.061, 0.13, -0.087, 0.279, -1.86, 0.152, 0.172, -0.233, 0.318, 0.201),
    (2.0, 0.584, 0.62, 0.079, 0.115, -0.03, 0.238, -2.24, 0.421, 0.253, -0.308, 0.357, 0.273),
    (5.0, 0.539, 0.643, 0.118, 0.105, 0.06, 0.149, -2.397, 0.864, 0.19, -0.287, 0.51, 0.236),
    (10.0, 0.585, 0.618, 0.091, 0.136, -0.079, 0.086, -2.433, 0.92, 0.177, -0.225, 0.477, 0.136),
    (20.0, 0.429, 0.539, 0.117, 0.119, -0.019, -0.077, -2.603, 0.813, 0.317, -0.306, 0.454, 0.177),
)
_columns = tuple(zip(*ROWS, strict=True))
SHIPPED = MarginTable(
    _columns[0], *(tuple(zip(*_columns[k : k + 2], strict=True)) for k in range(1, 13, 2))
)
