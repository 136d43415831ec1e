"""Spikes: rays in which the radar hears the sun or a transmitter, not an echo.

A receiver that hears a constant power takes it for reflectivity that grows with the range squared.
So rays are searched for a stretch where most gates have one and the same power, far out, where rain
of 100 km would have to grow as the range squared to look like it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.runtime.jit import jit

Float = NDArray[np.float32]

# Width in dB of the powers that are one, and share of a ray's gates that have it in a spike.
SAME, SHARE = 5, 0.6
# A gate of a spike's ray is rain when it is stronger than the spike by so many dB.
ABOVE = 4.0
# A spike is narrower than so many rays: those beside it have not its power.
WIDEST = 5
# Nearer than this, metres, a ray tells nothing; the same counts for weak transmitters.
NEAREST = 10_000.0
# Powers are counted in so many steps of 1 dB from here on, in dBZ at 1 km.
LOWEST, BINS = -120, 256


def spikes(dbz: Float, range_: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return the gates in spikes, (rays, gates) bool; ranges (gates,) are in metres."""
    result = np.zeros(dbz.shape, bool)
    first = int(np.searchsorted(range_, NEAREST))
    heard = np.isfinite(dbz)
    # Most sweeps have few rays with so much echo; those beside them are looked at, too.
    full = np.count_nonzero(heard[:, first:], axis=1) > SHARE * (range_.size - first) / 2
    next_to_full = np.roll(full, WIDEST) | np.roll(full, -WIDEST)
    looked = np.flatnonzero(full | next_to_full)
    if full.any():
        grows = (20 * np.log10(np.maximum(range_, 1.0) / 1000)).astype(np.float32)
        counts = np.zeros((looked.size, BINS), np.int64)
        _count(np.asarray(dbz, np.float32), grows, looked, first, counts)
        level = _levels(counts, looked, range_.size - first, len(dbz))
        rays = looked[level > -np.inf]
        below = (level[level > -np.inf] + np.float32(ABOVE))[:, np.newaxis]
        result[rays] = heard[rays] & (dbz[rays] - grows < below)
    return result


@jit
def _count(
    dbz: Float, grows: Float, rays: NDArray[np.int64], first: int, counts: NDArray[np.int64]
) -> None:
    """Count the gates of some rays, from one on, by their power in steps of 1 dB."""
    for k in range(rays.size):
        for gate in range(first, grows.size):
            power = dbz[rays[k], gate] - grows[gate]
            if abs(power) < np.inf:
                counts[k, min(max(int(power - np.float32(LOWEST)), 0), BINS - 1)] += 1


def _levels(
    counts: NDArray[np.int64], looked: NDArray[np.int64], far: int, rays: int
) -> NDArray[np.float32]:
    """Return the power of the spike in each of some rays, in dB; minus infinity without one.

    Of each ray there are the counts (looked, step) of its ``far`` gates.
    """
    sums = np.cumsum(np.pad(counts, ((0, 0), (1, 0))), axis=1)
    same = np.zeros((rays, BINS - SAME + 1), np.int64)
    same[looked] = sums[:, SAME:] - sums[:, :-SAME]
    best = same[looked].argmax(axis=1)
    # Gates with more than that power may have a spike under the rain.
    more = sums[:, -1] - sums[np.arange(len(counts)), best + SAME]
    least = SHARE * np.maximum(far - more, far / 2)
    spiked = same[looked, best] > least
    for side in (-WIDEST, WIDEST):
        spiked &= same[(looked + side) % rays, best] < least / 2
    return np.where(spiked, LOWEST + best + SAME / 2, -np.inf).astype(np.float32)
