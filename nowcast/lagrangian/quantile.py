"""Rain rates at a probability: the quantile function between forecast thresholds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.team import over_rows

Float = NDArray[np.float32]

#: Rain above the highest threshold falls off as a power of the rate: halved at this factor of it.
HALVED_AT = 1.4
#: Rain rate in mm h-1 that no quantile exceeds.
MOST = 200.0


def quantile(normal: Float, probability: Float, thresholds: tuple[float, ...], out: Float) -> None:
    """Fill ``out`` with the rain rates whose exceedance is as likely as that of a normal field.

    Parameters
    ----------
    normal : ndarray, (y, x) float32
        Standard normal: 0 takes the median, 2 the rate that is exceeded once in 44 times.
    probability : ndarray, (threshold, y, x) float32
        Of exceedance, not increasing with the threshold; NaN is missing.
    thresholds : tuple of float
        In mm h-1, increasing.
    out : ndarray, (y, x) float32
        Rain rate in mm h-1: 0 where the lowest threshold is not reached; log-linear between
        thresholds; a power law beyond the highest.
    """
    rates = np.log(np.asarray(thresholds, np.float32))
    power = np.float32(np.log(HALVED_AT) / np.log(2))
    over_rows(
        _quantile, (out, normal, np.arange(len(out))), 64, probability, rates, power,
        np.float32(np.log(MOST)),
    )  # fmt: skip


@jit
def _tail(z):
    """Probability that a standard normal exceeds z, by Abramowitz and Stegun 7.1.26."""
    x = abs(z) * np.float32(0.70710678)
    t = np.float32(1) / (np.float32(1) + np.float32(0.3275911) * x)
    poly = t * (
        np.float32(0.254829592)
        + t * (np.float32(-0.284496736)
        + t * (np.float32(1.421413741)
        + t * (np.float32(-1.453152027) + t * np.float32(1.061405429))))
    )  # fmt: skip
    tail = np.float32(0.5) * poly * np.exp(-x * x)
    return tail if z > 0 else np.float32(1) - tail


@jit
def _quantile(out, normal, rows, probability, rates, power, most):
    count = len(rates)
    half, sure, rare = np.float32(0.5), np.float32(3.0), np.float32(1e-3)
    for i in range(out.shape[0]):
        row = rows[i]
        for j in range(out.shape[1]):
            lowest = probability[0, row, j]
            if np.isnan(lowest) or np.isnan(normal[i, j]):
                out[i, j] = np.nan
                continue
            # Most of a map is dry: no exponential where a bound of the tail says so already.
            z = normal[i, j]
            if (z <= 0 and lowest <= half) or (z < sure and lowest < rare):
                out[i, j] = np.float32(0)
                continue
            beyond = _tail(z)
            if beyond >= lowest:
                out[i, j] = np.float32(0)
                continue
            k = 0
            while k + 1 < count and probability[k + 1, row, j] > beyond:
                k += 1
            at = probability[k, row, j]
            if k + 1 < count:
                after = max(probability[k + 1, row, j], np.float32(1e-9))
                part = np.log(at / beyond) / np.log(at / after)
                rate = rates[k] + part * (rates[k + 1] - rates[k])
            else:
                rate = rates[k] + power * np.log(at / beyond)
            out[i, j] = np.exp(min(rate, most))
