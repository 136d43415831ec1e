"""Confidence intervals by resampling events, and runs of cases within them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

#: Fewer events than this are kept once each; only runs of cases in them are drawn.
FEWEST_EVENTS = 3


def bootstrap_weights(
    events: Sequence[int] | NDArray[np.integer], block: int, draws: int
) -> NDArray[np.float64]:
    """Return how often each case is in each bootstrap sample of events and of runs of cases.

    Cases of one event see the same rain and are not independent. So whole events are drawn with
    replacement, and in each event circular runs of ``block`` consecutive cases, so that every case
    is equally frequent. With fewer than `FEWEST_EVENTS` events, events are not resampled: the
    intervals then say nothing about other events.

    - ``events`` (case,): event of each case; cases of one event are in order of time.
    - ``block``: length of the runs.
    - ``draws``: number of samples.
    - returns (draws, cases): counts of each case in each sample.

    References
    ----------
    Politis and Romano, "A circular block-resampling procedure for stationary data", in: Exploring
    the Limits of Bootstrap, Wiley 1992. Davison and Hinkley, Bootstrap Methods and their
    Application, Cambridge 1997, section 3.8 (hierarchical data).
    """
    labels = np.asarray(events)
    names, counts = np.unique(labels, return_counts=True)
    rng = np.random.default_rng([0, len(labels), block])
    if len(names) >= FEWEST_EVENTS:
        times = rng.multinomial(len(names), np.full(len(names), 1 / len(names)), size=draws)
    else:
        times = np.ones((draws, len(names)), np.int64)
    weights = np.zeros((draws, len(labels)))
    rows = np.arange(draws)[:, np.newaxis]
    for name, cases, taken in zip(names, counts, times.T, strict=True):
        where = np.flatnonzero(labels == name)
        length = max(1, min(block, int(cases)))
        runs = -(-int(cases) // length)
        first = rng.integers(cases, size=(draws, int(taken.max()) * runs))
        wanted = np.arange(first.shape[1]) < (taken * runs)[:, np.newaxis]
        for k in range(length):
            np.add.at(weights, (rows, where[(first + k) % cases]), wanted)
    return weights


def independent_runs(events: Sequence[int] | NDArray[np.integer], block: int) -> int:
    """Count the disjoint runs of ``block`` cases over all events; at least one for each."""
    _, counts = np.unique(np.asarray(events), return_counts=True)
    return int(np.maximum(1, counts // max(1, block)).sum()) if len(counts) else 0


def difference_interval(
    numerator: NDArray[np.number],
    denominator: NDArray[np.number],
    reference: int,
    weights: NDArray[np.float64],
    level: float = 0.95,
) -> NDArray[np.float64]:
    """Return the interval of each forecaster's pooled score minus the reference's, by bootstrap.

    - ``numerator``, ``denominator`` (case, forecaster, ...): terms of each case; the score is the
      quotient of their sums.
    - ``reference``: index of the reference; both scores of a difference come from the same sample.
    - ``weights`` (draw, case): from `bootstrap_weights`.
    - ``level``: probability inside the interval.
    - returns (2, forecaster, ...): lower and upper quantile; NaN where fewer than half of the
      samples have a denominator.
    """
    above = np.tensordot(weights, np.asarray(numerator, np.float64), 1)
    below = np.tensordot(weights, np.asarray(denominator, np.float64), 1)
    score = np.divide(above, below, out=np.full_like(above, np.nan), where=below > 0)
    difference = score - score[:, reference : reference + 1]
    known = np.isfinite(difference).mean(0) >= 0.5
    ends = np.full((2, *known.shape), np.nan)
    tail = (1 - level) / 2
    ends[:, known] = np.nanquantile(difference[:, known], [tail, 1 - tail], axis=0)
    return ends
