"""Thresholds and logistic probabilities of a method's field, fitted on other radars."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit

from ci.bench.skill.scores import EDGES, THRESHOLDS, Scores
from nowcast.verification.probability import BINS

#: Largest distance in dB of a calibrated threshold from the event's threshold.
REACH_DB = 5.0
#: Rain rate in dB that stands for dry in the logistic.
DRY_DB = -15.0
#: Middles of the bins of the forecast's rain rate in dB.
CENTRES = np.concatenate([[DRY_DB], (EDGES[1:] + EDGES[:-1]) / 2, EDGES[-1:]])


def calibrated_threshold(others: Sequence[Scores], threshold: float) -> float:
    """Return the rain rate whose exceedance has the largest mean CSI on other radars.

    Parameters
    ----------
    others : sequence of Scores
        One for each radar.
    threshold : float
        Of the event, in mm h-1; returned as it is without other radars.
    """
    if not others:
        return threshold
    near = np.flatnonzero(np.abs(EDGES - 10 * np.log10(threshold)) <= REACH_DB)
    t = THRESHOLDS.index(threshold)
    csi = []
    for scores in others:
        false_alarms, hits = scores.reached[t][:, near]
        union = scores.table[t, 1].sum() + false_alarms
        csi.append(np.divide(hits, union, out=np.zeros(len(near)), where=union > 0))
    return float(10 ** (EDGES[near[np.argmax(np.mean(csi, 0))]] / 10))


@dataclass(frozen=True)
class Logistic:
    """Probability of an event from a field: logistic(slope * dB + offset), a constant if dry.

    Parameters
    ----------
    slope, offset, dry : float
        ``dry`` is the logit of the probability where the field is below `DRY_DB`.
    """

    slope: float
    offset: float
    dry: float

    @classmethod
    def fit(cls, others: Sequence[Scores], threshold: float) -> Logistic:
        """Fit by maximum likelihood to the tables of other radars, each with the same weight."""
        t = THRESHOLDS.index(threshold)
        tables = [s.table[t] / s.table[t].sum() for s in others if s.table[t].sum()]
        no, yes = np.mean(tables, 0)
        wet = CENTRES > DRY_DB

        def loss(parameters: NDArray[np.float64]) -> float:
            z = parameters[0] * CENTRES[wet] / 10 + parameters[1]
            return float((yes[wet] * np.logaddexp(0, -z) + no[wet] * np.logaddexp(0, z)).sum())

        slope, offset = minimize(loss, [1.0, 0.0], method="Nelder-Mead").x
        dry = (yes[~wet].sum() + 1e-9) / (yes[~wet].sum() + no[~wet].sum() + 2e-9)
        return cls(slope / 10, offset, float(np.log(dry / (1 - dry))))

    def brier_sums(self, scores: Scores, threshold: float) -> NDArray[np.float64]:
        """Return the sums of the Brier score on a table, (BINS, 5), see `probability_sums`."""
        p = expit(np.where(CENTRES > DRY_DB, self.slope * CENTRES + self.offset, self.dry))
        no, yes = scores.table[THRESHOLDS.index(threshold)]
        columns = ((no + yes), (no + yes) * p, (no + yes) * p**2, yes, yes * p)
        sums = np.zeros((BINS, 5))
        np.add.at(sums, np.minimum((p * BINS).astype(int), BINS - 1), np.stack(columns, 1))
        return sums
