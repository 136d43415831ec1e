"""Corrections of probabilities: what is added to their logits, and the field that it makes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.team import over_rows
from nowcast.lagrangian.arrival import Arrival
from nowcast.lagrangian.cascade import Cascade
from nowcast.lagrangian.exceedance import MarginTable

Float = NDArray[np.float32]


class Correction(Protocol):
    """A function that corrects the probabilities of a lead time, such as a trained network."""

    def __call__(
        self,
        cascade: Cascade,
        arrival: Arrival,
        table: MarginTable,
        *,
        spacing_km: float,
        step_minutes: float,
    ) -> Float:
        """Return what is added to the logits at `THRESHOLDS`, (threshold, y, x) float32; finite.

        Parameters
        ----------
        cascade : Cascade
            Of the last frames.
        arrival : Arrival
            Of the lead time.
        table : MarginTable
            By which the probabilities are made that are corrected.
        spacing_km, step_minutes : float
            Of the grid and of the frames.
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


def moved_ranks(rank: Float, odds: Float, field: Float, thresholds: Sequence[float]) -> Float:
    """Return ranks whose logits are moved by what belongs to each pixel's rain rate.

    Parameters
    ----------
    rank : ndarray, (y, x) float32
        NaN is missing.
    odds : ndarray, (threshold, y, x) float32
        Added to the logit of the rank, at each threshold.
    field : ndarray, (y, x) float32
        Rain rate in mm h-1; between thresholds its logarithm decides, below the lowest that one.
    thresholds : sequence of float
        In mm h-1, increasing.
    """
    out = np.full_like(rank, np.nan)
    rates = np.log(np.asarray(thresholds, np.float32))
    over_rows(_move, (out, rank, field, np.arange(len(rank))), 64, odds, rates)
    return out


@jit
def _move(out, rank, field, rows, odds, rates):
    one = np.float32(1)
    last = len(rates) - 1
    for i in range(out.shape[0]):
        row = rows[i]
        for j in range(out.shape[1]):
            r = rank[i, j]
            if not np.isfinite(r):
                continue
            if r <= 0 or r >= one:  # the ends stay the ends
                out[i, j] = r
                continue
            k, part = 0, np.float32(0)
            if field[i, j] > 0:
                rate = np.log(field[i, j])
                while k < last and rates[k + 1] <= rate:
                    k += 1
                if k < last and rate > rates[k]:
                    part = (rate - rates[k]) / (rates[k + 1] - rates[k])
            shift = odds[k, row, j]
            if part > 0:
                shift += part * (odds[k + 1, row, j] - shift)
            out[i, j] = one / (one + np.exp(-(np.log(r / (one - r)) + shift)))
