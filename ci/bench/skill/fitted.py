"""Yes and no, and probabilities, of methods without their own: fitted to their field elsewhere."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit

from ci.bench.skill.cases import EDGES, JUDGED, PROBABLE, Case
from nowcast.verification.probability import BINS

#: Largest distance in dB of a fitted cut from the threshold.
REACH_DB = 5.0
#: Rain rate in dB that stands for dry in the logistic.
DRY_DB = -15.0
#: Middles of the bins of the forecast's rain rate in dB.
CENTRES = np.concatenate([[DRY_DB], (EDGES[1:] + EDGES[:-1]) / 2, EDGES[-1:]])

Table = NDArray[np.float64]


def fill_in(cases: Sequence[Case]) -> None:
    """Fill in yes and no and probabilities where methods have none, fitted on other radars."""
    tables: dict[str, Table] = {}
    for case in cases:
        tables[case.radar] = tables.get(case.radar, np.zeros_like(case.table)) + case.table
    of_radar: dict[str, list[Case]] = defaultdict(list)
    for case in cases:
        of_radar[case.radar].append(case)
    for radar, judged in of_radar.items():
        for m, i in np.ndindex(judged[0].table.shape[:2]):
            others = [table[m, i] for other, table in tables.items() if other != radar]
            least = cut(others)
            # With a single radar it is fitted on that one: better than no figure.
            logistic = Logistic.fit(others or [tables[radar][m, i]])
            for case in judged:
                if not case.decides[m]:
                    counts = case.sums.hits, case.sums.false_alarms, case.sums.misses
                    for values, count in zip(
                        counts, cut_counts(case.table[m, i], least), strict=True
                    ):
                        values[m, i, JUDGED] = count
                if not case.probable[m]:
                    case.probability[m, i] = logistic.brier_sums(case.table[m, i])


def reached(table: Table) -> Table:
    """Return the pixels, without and with an event, whose forecast reaches each edge, (2, edge)."""
    return table[..., ::-1].cumsum(-1)[..., ::-1][..., 1:]


def cut_counts(table: Table, edge: int) -> tuple[float, float, float]:
    """Return hits, false alarms and misses of a field that is cut at an edge."""
    false_alarms, hits = reached(table)[:, edge]
    return hits, false_alarms, table[1].sum() - hits


def cut(others: Iterable[Table]) -> int:
    """Return the edge whose exceedance has the largest mean CSI on other radars.

    Without other radars it is the edge of the threshold.
    """
    distance = np.abs(EDGES - 10 * np.log10(PROBABLE))
    near, csi = np.flatnonzero(distance <= REACH_DB), []
    for table in others:
        false_alarms, hits = reached(table)[:, near]
        union = table[1].sum() + false_alarms
        csi.append(np.divide(hits, union, out=np.zeros(len(near)), where=union > 0))
    return int(near[np.argmax(np.mean(csi, 0))] if csi else distance.argmin())


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
    def fit(cls, others: Sequence[Table]) -> Logistic:
        """Fit by maximum likelihood to the tables of other radars, each with the same weight."""
        no, yes = np.mean([table / table.sum() for table in others if table.sum()], 0)
        wet = CENTRES > DRY_DB

        def loss(parameters: NDArray[np.float64]) -> float:
            z = parameters[0] * CENTRES[wet] / 10 + parameters[1]
            return float((yes[wet] * np.logaddexp(0, -z) + no[wet] * np.logaddexp(0, z)).sum())

        slope, offset = minimize(loss, [1.0, 0.0], method="Nelder-Mead").x
        dry = (yes[~wet].sum() + 1e-9) / (yes[~wet].sum() + no[~wet].sum() + 2e-9)
        return cls(slope / 10, offset, float(np.log(dry / (1 - dry))))

    def brier_sums(self, table: Table) -> NDArray[np.float64]:
        """Return the sums of the Brier score on a table, (BINS, 5), see `probability_sums`."""
        p = expit(np.where(CENTRES > DRY_DB, self.slope * CENTRES + self.offset, self.dry))
        no, yes = table
        columns = ((no + yes), (no + yes) * p, (no + yes) * p**2, yes, yes * p)
        sums = np.zeros((BINS, 5))
        np.add.at(sums, np.minimum((p * BINS).astype(int), BINS - 1), np.stack(columns, 1))
        return sums
