"""Corrections of probabilities: terms for their logits, and the field that follows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.team import over_rows
from nowcast.lagrangian.cascade import Arrival, Cascade
from nowcast.lagrangian.exceedance import MarginTable
from nowcast.lagrangian.ranks import match, ranks

Float = NDArray[np.float32]


class Correction(Protocol):
    """A function that corrects the probabilities of a lead time, such as a trained network."""

    def __call__(self, cascade: Cascade, arrival: Arrival, table: MarginTable) -> Float:
        """Return the terms to add to the logits at `THRESHOLDS`, (threshold, y, x) float32; finite.

        ``cascade`` is of the last frames, ``arrival`` of the lead time; ``table`` makes the
        probabilities to correct.
        """
        ...


def between(shift: Float, known: Sequence[float], wanted: Sequence[float]) -> Float:
    """Interpolate (threshold, y, x) to other thresholds, linearly in the log of the rain rate."""
    at = np.interp(np.log(wanted), np.log(known), np.arange(len(known)))
    lower = np.minimum(at.astype(int), max(len(known) - 2, 0))
    part = (at - lower).astype(np.float32)[:, np.newaxis, np.newaxis]
    upper = np.minimum(lower + 1, len(known) - 1)
    made: Float = shift[lower] + part * (shift[upper] - shift[lower])
    return made


def redrawn(
    field: Float, chances: Float, factors: Sequence[float], thresholds: Sequence[float]
) -> Float:
    """Return a field that reaches each threshold where that is most likely.

    A threshold is reached over as many pixels as before, times its factor: so the field keeps its
    distribution of rain rates where a correction expects no more and no less rain, and grows or
    shrinks by area as the correction expects, not by rates that nobody has seen.

    - ``field`` (y, x): rain rate in mm h-1 before the correction; NaN is missing.
    - ``chances`` (threshold, y, x): corrected probabilities of exceedance, not increasing with the
      threshold; NaN where ``field`` is.
    - ``factors``: by which the area that is expected to reach each threshold has changed.
    - ``thresholds``: in mm h-1, increasing.
    - returns (y, x): between thresholds the logarithm of the rate is linear in how far the logits
      of both probabilities lie from those at which the thresholds are reached; above the highest
      that is reached rates are those that ``field`` has there, below the lowest too, or half of
      that threshold.
    """
    known = np.isfinite(field)
    values = field[known]
    cuts = []
    for threshold, factor, chance in zip(thresholds, factors, chances, strict=True):
        count = min(round(np.count_nonzero(values >= np.float32(threshold)) * factor), values.size)
        if not count:
            break
        cuts.append(np.partition(chance[known], values.size - count)[values.size - count])
    if not cuts:
        return np.where(field >= thresholds[0], np.float32(thresholds[0] / 2), field)
    out = np.full_like(field, np.nan)
    rates = np.asarray(thresholds[: len(cuts)], np.float32)
    over_rows(_redraw, (out, field, np.arange(len(field))), 64, chances, np.stack(cuts), rates)
    top = out >= rates[-1]
    highest = np.where(field >= rates[-1], field, np.float32(np.nan))
    out[top] = match(ranks(np.where(top, chances[len(cuts) - 1], np.float32(np.nan))), highest)[top]
    return out


@jit
def _odds(p):
    """Return the logit of a probability that is kept off 0 and 1."""
    p = min(max(p, np.float32(1e-6)), np.float32(1 - 1e-6))
    return np.log(p / (np.float32(1) - p))


@jit
def _redraw(out, field, rows, chances, cuts, rates):
    half = np.float32(0.5)
    for i in range(out.shape[0]):
        row = rows[i]
        for j in range(out.shape[1]):
            if not np.isfinite(field[i, j]):
                continue
            count = 0
            while count < len(rates) and chances[count, row, j] >= cuts[count]:
                count += 1
            if count == 0:
                out[i, j] = field[i, j] if field[i, j] < rates[0] else half * rates[0]
                continue
            rate = rates[count - 1]
            if count < len(rates):
                above = _odds(chances[count - 1, row, j]) - _odds(cuts[count - 1])
                below = _odds(cuts[count]) - _odds(chances[count, row, j])
                if above + below > 0:
                    rate *= (rates[count] / rate) ** (above / (above + below))
            out[i, j] = rate
