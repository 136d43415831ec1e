"""Scores of probabilities and of ensembles, from sums that can be added over cases."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

#: Bins of forecast probability, each 0.01 wide; the last one holds 1 too.
BINS = 100

Sums = NDArray[np.float64]


def probability_sums(
    probability: NDArray[np.float32], observed: NDArray[np.bool_], scored: NDArray[np.bool_]
) -> Sums:
    """Return the sums for all scores of a probability forecast; they add up over cases.

    - ``probability`` (y, x): forecast probability of the event, 0 to 1; pixels that are not scored
      may have any value.
    - ``observed`` (y, x): whether there was an event.
    - ``scored`` (y, x): which pixels count.
    - returns (BINS, 5): for each bin of probability p, with o = 1 for an event and 0 for none, the
      number of pixels and the sums of p, p squared, o, and p times o.
    """
    p, event = np.clip(probability[scored], 0.0, 1.0, dtype=np.float64), observed[scored]
    # float32 0.07 times 100 is 6.9999998, but a probability on an edge belongs in the next bin.
    place = np.minimum((p * BINS + 1e-5).astype(np.int64), BINS - 1)
    columns = (np.ones(p.size), p, p * p, event, event * p)
    return np.stack([np.bincount(place, column, BINS) for column in columns], axis=1)


@dataclass(frozen=True)
class BrierParts:
    """The Brier score and its parts: reliability - resolution + uncertainty + within."""

    score: float  #: Mean squared difference of probability and event (1 or 0); 0 is perfect.
    #: Mean squared difference of a bin's mean probability and its frequency of events.
    reliability: float
    resolution: float  #: Mean squared difference of a bin's frequency of events from all events'.
    #: c (1 - c) with the frequency c of all events: the score of forecasting c everywhere.
    uncertainty: float
    within: float  #: The remainder, since probabilities differ within a bin.

    @property
    def skill(self) -> float:
        """Brier skill score against all events' frequency; NaN if all or no pixels have one."""
        return 1 - self.score / self.uncertainty if self.uncertainty > 0 else float("nan")


def brier_parts(sums: Sums, bins: int = 10) -> BrierParts:
    """Return the Brier score and its parts; all NaN without a scored pixel.

    - ``sums`` (BINS, 5): from `probability_sums`, added over any number of cases.
    - ``bins``: number of bins of the decomposition, a divisor of `BINS`.

    References
    ----------
    Murphy, "A new vector partition of the probability score", J. Appl. Meteor. 12 (1973), 595-600.
    Stephenson, Coelho and Jolliffe, "Two extra components in the Brier score decomposition", Wea.
    Forecasting 23 (2008), 752-757.
    """
    n, _, pp, o, po = sums.sum(0)
    if n == 0:
        return BrierParts(*(5 * [float("nan")]))
    score = (pp - 2 * po + o) / n
    mean_p, frequency, count = reliability_curve(sums, bins)
    there = count > 0
    weight, climate = count[there] / n, o / n
    reliability = float((weight * (mean_p[there] - frequency[there]) ** 2).sum())
    resolution = float((weight * (frequency[there] - climate) ** 2).sum())
    uncertainty = float(climate * (1 - climate))
    within = float(score - reliability + resolution - uncertainty)
    return BrierParts(float(score), reliability, resolution, uncertainty, within)


def reliability_curve(sums: Sums, bins: int = 10) -> tuple[Sums, Sums, Sums]:
    """Return mean probability, observed frequency and number of pixels of each probability bin.

    - ``sums`` (BINS, 5): from `probability_sums`.
    - ``bins``: number of bins, a divisor of `BINS`.
    - returns ``mean probability``, ``observed frequency``, ``count`` (bins,): NaN in bins without a
      pixel.
    """
    coarse = sums.reshape(bins, -1, 5).sum(1)
    count = coarse[:, 0]
    undefined = np.full(bins, np.nan)
    mean_p, frequency = (
        np.divide(coarse[:, k], count, out=undefined.copy(), where=count > 0) for k in (1, 3)
    )
    return mean_p, frequency, count


def roc_curve(sums: Sums) -> tuple[Sums, Sums, float]:
    """Return the probabilities of false detection and of detection by threshold, and the area.

    - ``sums`` (BINS, 5): from `probability_sums`.
    - returns ``pofd``, ``pod`` (BINS + 1,): from "never warn" (0, 0) to "always warn" (1, 1).
    - returns ``area``: area under the curve by the trapezoidal rule; NaN unless some pixels had an
      event and some had none.
    """
    events = np.concatenate([[0.0], np.cumsum(sums[::-1, 3])])
    others = np.concatenate([[0.0], np.cumsum(sums[::-1, 0] - sums[::-1, 3])])
    if events[-1] == 0 or others[-1] == 0:
        undefined = np.full(len(events), np.nan)
        return undefined, undefined, float("nan")
    pod, pofd = events / events[-1], others / others[-1]
    return pofd, pod, float(np.trapezoid(pod, pofd))


def ensemble_sums(
    members: NDArray[np.float32], observed: NDArray[np.float32], scored: NDArray[np.bool_]
) -> tuple[Sums, Sums]:
    """Return an ensemble's CRPS summed over pixels, and the counts of the observation's ranks.

    - ``members`` (member, y, x): forecast rain rates in mm h-1.
    - ``observed`` (y, x): observed rain rate in mm h-1.
    - ``scored`` (y, x): which pixels count; members and observation are finite there.
    - returns ``crps`` (3,): number of pixels, sum of the mean absolute error of the members, and
      sum of the mean absolute difference of two members, drawn with replacement; see `crps`.
    - returns ``ranks`` (member + 1,): number of pixels by rank, which is the number of members
      below the observation. Where members equal the observation (mostly where all are dry), the
      pixel counts in equal parts for every possible rank.

    References
    ----------
    Gneiting and Raftery, "Strictly proper scoring rules, prediction, and estimation", J. Amer.
    Stat. Assoc. 102 (2007), 359-378. Hamill, "Interpretation of rank histograms for verifying
    ensemble forecasts", Mon. Wea. Rev. 129 (2001), 550-560.
    """
    m, o = len(members), observed[scored].astype(np.float64)
    error, spread = 0.0, 0.0
    below, equal = np.zeros((2, o.size), np.int64)
    for k, values in enumerate(np.sort(members[:, scored], axis=0)):
        error += np.abs(values - o).sum()
        # Sum over pairs of |x_j - x_k|: the k-th smallest is above k and below m - 1 - k.
        spread += (2 * k - m + 1) * values.sum(dtype=np.float64)
        below += values < o
        equal += values == o
    # Equal parts for the ranks from ``below`` to ``below + equal``, as sums of rises and falls.
    part = 1.0 / (equal + 1)
    rises = np.bincount(below, part, m + 2) - np.bincount(below + equal + 1, part, m + 2)
    crps = np.array([o.size, error / m, 2 * spread / (m * m)])
    return crps, np.cumsum(rises)[:-1]


def crps(sums: Sums, members: int | None = None) -> float:
    """Return the continuous ranked probability score in mm h-1; NaN without a pixel.

    - ``sums`` (3,): from `ensemble_sums`, added over any number of cases.
    - ``members``: number of members, for the fair score that does not favour large ensembles
      (Ferro, 2014): members then count as a sample, not as the whole distribution.
    """
    pixels, error, spread = sums
    if pixels == 0:
        return float("nan")
    if members is not None and members > 1:
        spread = spread * members / (members - 1)
    return float((error - spread / 2) / pixels)
