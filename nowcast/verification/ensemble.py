"""CRPS and rank histogram of an ensemble, from sums that may be added over cases."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import ShapeError
from daskdl.kernels.runtime.jit import jit

Sums = NDArray[np.float64]


def ensemble_sums(
    members: NDArray[np.float32], observed: NDArray[np.float32], scored: NDArray[np.bool_]
) -> tuple[Sums, Sums]:
    """Sum an ensemble's CRPS over pixels, and count the ranks of the observation.

    - ``members`` (member, y, x): forecast rain rates in mm h-1.
    - ``observed`` (y, x): observed rain rate in mm h-1.
    - ``scored`` (y, x): which pixels count; members and observation are finite there.
    - returns ``crps`` (3,): number of pixels, sum of the mean absolute error of the members, and
      sum of the mean absolute difference of two members, drawn with replacement; see `crps`.
    - returns ``ranks`` (member + 1,): how often the observation had so many members below it. Where
      members equal it (mostly where all is dry) the pixel counts in equal parts for every rank that
      it may have.
    - raises ShapeError if members and observation do not lie on one grid.

    References
    ----------
    Gneiting and Raftery, "Strictly proper scoring rules, prediction, and estimation", J. Amer.
    Stat. Assoc. 102 (2007), 359-378. Hamill, "Interpretation of rank histograms for verifying
    ensemble forecasts", Mon. Wea. Rev. 129 (2001), 550-560.
    """
    if members.ndim != 3 or not members.shape[1:] == observed.shape == scored.shape:
        raise ShapeError(
            "ensemble_sums: expected members (member, y, x) on the grid of observed and scored, "
            f"found {members.shape}, {observed.shape} and {scored.shape}."
        )
    crps, ranks = np.zeros(3), np.zeros(len(members) + 1)
    # One pixel's members side by side: the kernel sorts them where they are.
    values = np.ascontiguousarray(members[:, scored].T, np.float32)
    _add_pixels(values, np.ascontiguousarray(observed[scored], np.float32), crps, ranks)
    return crps, ranks


@jit
def _add_pixels(values: Any, observed: Any, crps: Any, ranks: Any) -> None:
    """Add pixels to the sums; ``values`` (pixel, member) are sorted in place."""
    pixels, m = values.shape
    for i in range(pixels):
        row = values[i]
        for k in range(1, m):
            value = row[k]
            at = k
            while at > 0 and row[at - 1] > value:
                row[at] = row[at - 1]
                at -= 1
            row[at] = value
        error = 0.0
        spread = 0.0
        below = 0
        equal = 0
        o = np.float64(observed[i])
        for k in range(m):
            value = np.float64(row[k])
            error += abs(value - o)
            # Sum over pairs of |x_j - x_k|: the k-th smallest is above k and below m - 1 - k.
            spread += (2 * k - m + 1) * value
            if value < o:
                below += 1
            elif value == o:
                equal += 1
        crps[0] += 1
        crps[1] += error / m
        crps[2] += 2 * spread / (m * m)
        part = 1.0 / (equal + 1)
        for rank in range(below, below + equal + 1):
            ranks[rank] += part


def crps(sums: Sums, members: int | None = None) -> float:
    """Continuous ranked probability score in mm h-1; NaN without a pixel.

    - ``sums`` (3,): from `ensemble_sums`, of any number of cases.
    - ``members``: give it for the fair score, which does not favour large ensembles (Ferro, 2014):
      the members are then taken as a sample, not as the whole distribution.
    """
    pixels, error, spread = sums
    if pixels == 0:
        return float("nan")
    if members is not None and members > 1:
        spread = spread * members / (members - 1)
    return float((error - spread / 2) / pixels)
