"""Spikes: rays in which the radar hears the sun or a transmitter, not an echo.

A receiver that hears a constant power takes it for reflectivity that grows with the range squared.
So rays are searched for a stretch where most gates have one and the same power, far out, where rain
of 100 km would have to grow as the range squared to look like it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# Width in dB of the powers that are one, and share of a ray's gates that have it in a spike.
SAME, SHARE = 5, 0.6
# A gate of a spike's ray is rain when it is stronger than the spike by so many dB.
ABOVE = 4.0
# A spike is narrower than so many rays: those beside it have not its power.
WIDEST = 5
# Nearer than this, metres, a ray tells nothing; the same counts for weak transmitters.
NEAREST = 10_000.0


def spikes(dbz: NDArray[np.float32], range_: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return the gates in spikes.

    Parameters
    ----------
    dbz : (rays, gates) float32
        Minus infinity is no echo, NaN is missing.
    range_ : (gates,) float64
        Metres.

    Returns
    -------
    (rays, gates) bool
    """
    result = np.zeros(dbz.shape, bool)
    heard = np.isfinite(dbz)
    far = range_ >= NEAREST
    # Most sweeps have few rays with so much echo; those beside them are looked at, too.
    full = heard[:, far].sum(axis=1) > SHARE * far.sum() / 2
    next_to_full = np.roll(full, WIDEST) | np.roll(full, -WIDEST)
    looked = np.flatnonzero(full | next_to_full)
    if full.any():
        power = dbz[looked] - (20 * np.log10(np.maximum(range_, 1.0) / 1000)).astype(np.float32)
        level = np.full(len(dbz), -np.inf, np.float32)
        level[looked] = _levels(power, heard[looked], far, looked, len(dbz))
        result[looked] = heard[looked] & (power < (level[looked] + ABOVE)[:, np.newaxis])
    return result


def _levels(
    power: NDArray[np.float32],
    heard: NDArray[np.bool_],
    far: NDArray[np.bool_],
    looked: NDArray[np.int64],
    rays: int,
) -> NDArray[np.float32]:
    """Return the power of the spike in each of some rays, in dB; minus infinity without one."""
    # A histogram of each ray's powers in steps of 1 dB.
    lowest = int(np.floor(power[heard].min()))
    bins = int(np.ceil(power[heard].max())) - lowest + SAME + 1
    row, column = np.nonzero(heard & far)
    step = (power[row, column] - lowest).astype(np.int64)
    counts = np.bincount(row * bins + step, minlength=len(power) * bins).reshape(-1, bins)
    sums = np.cumsum(np.pad(counts, ((0, 0), (1, 0))), axis=1)
    same = np.zeros((rays, bins - SAME + 1), np.int64)
    same[looked] = sums[:, SAME:] - sums[:, :-SAME]
    best = same[looked].argmax(axis=1)
    # Gates with more than that power may have a spike under the rain.
    more = sums[:, -1] - sums[np.arange(len(power)), best + SAME]
    least = SHARE * np.maximum(far.sum() - more, far.sum() / 2)
    spiked = same[looked, best] > least
    for side in (-WIDEST, WIDEST):
        spiked &= same[(looked + side) % rays, best] < least / 2
    return np.where(spiked, lowest + best + SAME / 2, -np.inf).astype(np.float32)
