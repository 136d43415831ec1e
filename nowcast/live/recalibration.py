"""Recalibration: probabilities are adjusted to observed frequencies of the last weeks, by a gate.

A curve for each lead time and threshold maps the method's probability to the issued one. It is
straight between the edges of ten bins, so that a curve's Brier score follows exactly from sums over
these bins, without the forecasts themselves. Curves are used only if they were better on periods
that they were not fitted to.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

import numpy as np
import xarray as xr
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: Edges of the bins.
EDGES = np.linspace(0, 1, 11)
#: Least rise of a curve from edge to edge; it makes the curve invertible.
RISE = 0.002
#: Weight, as a fraction of all pixels, that pulls each point of a curve to the identity.
HOLD = 1e-4
#: Number of stretches of time that are left out in turn, and the least number of blocks of hours.
FOLDS, FEWEST_BLOCKS = 5, 8
#: Number of standard errors by which the Brier score has to fall.
CERTAIN = 1.96
NAME = "exceedance_probability"


@dataclass(frozen=True)
class Verdict:
    """Score of curves on periods that they were not fitted to."""

    adopted: bool  #: Whether the Brier score fell by more than chance explains.
    blocks: int  #: Blocks of hours that were compared.
    #: Mean relative change of the Brier score over thresholds, and its standard error.
    change: float | None = None
    error: float | None = None

    def sentence(self) -> str:
        """Return the decision and its reason as a sentence."""
        if self.change is None or self.error is None:
            return f"probabilities stay: expected {FEWEST_BLOCKS} blocks, found {self.blocks}"
        done = "are recalibrated" if self.adopted else "stay"
        return (
            f"probabilities {done}: the Brier score on {self.blocks} blocks that curves were not "
            f"fitted to changed by {self.change:+.1%}, give or take {CERTAIN * self.error:.1%}"
        )


@dataclass(frozen=True)
class Recalibration:
    """Curves by lead time and threshold."""

    minutes: list[float]
    thresholds: list[float]  #: mm h-1.
    curves: list[list[list[float]]]  #: Issued probability at each of `EDGES`.

    def applied(self, forecast: xr.Dataset) -> xr.Dataset:
        """Return a forecast with adjusted probabilities; other lead times are interpolated.

        The probability from which on rain is expected is adjusted too, so that yes and no stay.
        """
        if NAME not in forecast:
            return forecast
        bent = self._bent(forecast, undo=False)
        bent[NAME].values[:] = np.minimum.accumulate(bent[NAME].values, axis=0)
        bent[NAME].attrs["recalibration"] = json.dumps(asdict(self))
        return bent

    def _bent(self, forecast: xr.Dataset, *, undo: bool) -> xr.Dataset:
        bent = forecast.copy()
        names = [name for name in (NAME, "event_probability") if name in forecast]
        for name in names:
            bent[name] = forecast[name].copy(deep=True)
        leads = forecast["lead_time"].values / np.timedelta64(60, "s")
        for n, lead in enumerate(leads):
            for k, threshold in enumerate(forecast["threshold"].values):
                curve = self._curve(float(lead), float(threshold))
                curves = (curve, EDGES) if undo else (EDGES, curve)
                for name in names:
                    values = bent[name].values
                    values[k, n] = np.interp(values[k, n], *curves)
        return bent

    def _curve(self, lead: float, threshold: float) -> Floats:
        curves = np.array(self.curves)
        logs = np.log(self.thresholds)
        at_lead = [
            [np.interp(lead, self.minutes, curves[:, k, e]) for e in range(len(EDGES))]
            for k in range(len(logs))
        ]
        one = np.array(at_lead)
        return np.array([np.interp(np.log(threshold), logs, one[:, e]) for e in range(len(EDGES))])


def before(forecast: xr.Dataset) -> xr.Dataset:
    """Return a forecast with its method's probabilities, whether or not it was recalibrated.

    This is exact but for rounding, and for pixels where a curve would have raised a probability
    above a lower threshold's: it was limited to that one, and stays so.
    """
    text = forecast[NAME].attrs.get("recalibration") if NAME in forecast else None
    return (
        forecast if text is None else Recalibration(**json.loads(text))._bent(forecast, undo=True)
    )


def judge(sums: Floats) -> Verdict:
    """Compare curves with none on periods that they are not fitted to.

    - ``sums`` (block, lead, threshold, bin, 5): see
      `nowcast.verification.probability.probability_sums`; blocks in the order of time.
    """
    blocks = len(sums)
    if blocks < FEWEST_BLOCKS or not sums[..., 0].any():
        return Verdict(False, blocks)
    change = np.zeros((blocks, sums.shape[2]))
    for part in np.array_split(np.arange(blocks), FOLDS):
        curves = fit(np.delete(sums, part, axis=0).sum(0))
        for cell in np.ndindex(*curves.shape[:2]):
            for block in part:
                one = sums[(block, *cell)]
                change[block, cell[1]] += _squares(one, curves[cell]) - _squares(one, EDGES)
    was = np.array([
        sum(_squares(sums[:, lead, k].sum(0), EDGES) for lead in range(sums.shape[1]))
        for k in range(sums.shape[2])
    ])  # fmt: skip
    rains = was > 0  # a threshold without any rain near it says nothing
    if not rains.any():
        return Verdict(False, blocks)
    relative = (change[:, rains] / was[rains]).mean(1)
    total = float(relative.sum())
    error = float(relative.std(ddof=1) * np.sqrt(blocks))
    return Verdict(total + CERTAIN * error < 0, blocks, total, error)


def fit(sums: Floats) -> Floats:
    """Return least-squares curves (lead, threshold, edge) from sums (lead, threshold, bin, 5).

    Curves rise from edge to edge, and stay between 0 and 1.
    """
    from scipy.optimize import lsq_linear

    curves = np.empty((*sums.shape[:2], len(EDGES)))
    rises = np.tril(np.ones((len(EDGES), len(EDGES))))  # from rises to a curve
    least = np.full(len(EDGES), RISE)
    least[0] = 0
    for cell in np.ndindex(*sums.shape[:2]):
        square, line, _ = _quadratic(sums[cell])
        hold = max(HOLD * sums[cell][:, 0].sum(), 1.0)
        root = np.linalg.cholesky(square + hold * np.eye(len(EDGES)))
        target = np.linalg.solve(root, line + hold * EDGES)
        made = lsq_linear(root.T @ rises, target, (least, np.inf), method="bvls").x
        highest = 1 - RISE * np.arange(len(EDGES))[::-1]
        curves[cell] = np.minimum(np.cumsum(made), highest)
    return curves


def _squares(sums: Floats, curve: Floats) -> float:
    """Return the sum of squared errors of forecasts with a curve."""
    square, line, events = _quadratic(sums)
    return float(curve @ square @ curve - 2 * line @ curve + events)


def _quadratic(sums: Floats) -> tuple[Floats, Floats, float]:
    """Return the squared error of a curve v as v @ square @ v - 2 line @ v + events."""
    count, p, p2, events, p_events = sums.T
    width, low = EDGES[1], EDGES[:-1]
    up, up2 = (p - low * count) / width, (p2 - 2 * low * p + low**2 * count) / width**2
    up_events = (p_events - low * events) / width
    square, line = np.zeros((len(EDGES), len(EDGES))), np.zeros(len(EDGES))
    k = np.arange(len(low))
    square[k, k] += count - 2 * up + up2
    square[k + 1, k + 1] += up2
    square[k, k + 1] += up - up2
    square[k + 1, k] += up - up2
    line[k] += events - up_events
    line[k + 1] += up_events
    return square, line, float(events.sum())
