"""Confidence intervals by drawing cases anew."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def block_weights(cases: int, block: int, draws: int, seed: int = 0) -> NDArray[np.float64]:
    """How often each case is drawn: bootstrap samples of runs of consecutive cases.

    Cases whose windows overlap see the same rain and are not independent, so whole runs of
    ``block`` consecutive cases are drawn (circularly, that every case is drawn as often); a block
    of 1 is the ordinary bootstrap.

    Parameters
    ----------
    cases : int
        Number of cases, in order of time.
    block : int
        Length of the runs.
    draws : int
        Number of samples.
    seed : int
        The same seed gives the same samples.

    Returns
    -------
    ndarray, (draws, cases) float64
        Counts of each case in each sample; every row sums up to about ``cases``.

    References
    ----------
    Politis and Romano, "A circular block-resampling procedure for stationary data", in: Exploring
    the Limits of Bootstrap, Wiley 1992.
    """
    block = max(1, min(block, cases))
    rng = np.random.default_rng([seed, cases, block])
    first = rng.integers(cases, size=(draws, -(-cases // block)))
    weights = np.zeros((draws, cases))
    rows = np.arange(draws)[:, np.newaxis]
    for k in range(block):
        np.add.at(weights, (rows, (first + k) % cases), 1)
    return weights


def csi_difference_interval(
    hits: NDArray[np.int64],
    unions: NDArray[np.int64],
    reference: int,
    weights: NDArray[np.float64],
    level: float = 0.95,
) -> NDArray[np.float64]:
    """Interval of each forecaster's pooled CSI minus the reference's, over bootstrapped cases.

    Parameters
    ----------
    hits, unions : ndarray, (case, forecaster, lead, threshold) int64
        Hits; hits + misses + false alarms.
    reference : int
        Which forecaster is the reference; both CSI of a difference come from the same sample.
    weights : ndarray, (draw, case) float64
        From `block_weights`.
    level : float
        Probability inside of the interval.

    Returns
    -------
    ndarray, (2, forecaster, lead, threshold) float64
        Lower and upper quantile; NaN where fewer than half of the samples have an event.
    """
    pooled_hits = np.tensordot(weights, hits.astype(np.float64), 1)
    pooled_unions = np.tensordot(weights, unions.astype(np.float64), 1)
    csi = np.divide(
        pooled_hits,
        pooled_unions,
        out=np.full_like(pooled_hits, np.nan),
        where=pooled_unions > 0,
    )
    difference = csi - csi[:, reference : reference + 1]
    known = np.isfinite(difference).mean(0) >= 0.5
    ends = np.full((2, *known.shape), np.nan)
    tail = (1 - level) / 2
    ends[:, known] = np.nanquantile(difference[:, known], [tail, 1 - tail], axis=0)
    return ends
