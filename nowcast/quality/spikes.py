"""Spikes: rays in which the radar receives the sun or a transmitter, not an echo.

A constant received power looks like reflectivity that grows with the range squared. So rays are
searched for the same power in most of their far gates, where 100 km of rain would have to grow with
the range squared to look alike.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float32]

# Width in dB within which powers are equal, and fraction of a ray's gates with it in a spike.
SAME, SHARE = 5, 0.6
# A gate in a spike's ray is rain if it is stronger than the spike by this many dB.
ABOVE = 4.0
# A spike is narrower than this many rays; the rays next to it do not have its power.
WIDEST = 5
# Gates nearer than this, in metres, are not used; the same holds for weak transmitters.
NEAREST = 10_000.0
# Lowest power, in dBZ at 1 km, and number of steps of 1 dB in which powers are counted.
LOWEST, BINS = -120, 256


def spikes(dbz: Float, range_: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return the gates in spikes, (rays, gates) bool; ranges (gates,) are in metres."""
    result = np.zeros(dbz.shape, bool)
    first = int(np.searchsorted(range_, NEAREST))
    heard = np.isfinite(dbz)
    # Most sweeps have few rays with enough echo; the rays next to them are searched, too.
    full = np.count_nonzero(heard[:, first:], axis=1) > SHARE * (range_.size - first) / 2
    next_to_full = np.roll(full, WIDEST) | np.roll(full, -WIDEST)
    looked = np.flatnonzero(full | next_to_full)
    if full.any():
        grows = (20 * np.log10(np.maximum(range_, 1.0) / 1000)).astype(np.float32)
        power = dbz[looked, first:] - grows[first:]
        counts = np.zeros((looked.size, BINS), np.int64)
        # The power of the far gates with echo, in steps of 1 dB.
        row, gate = np.nonzero(np.isfinite(power))
        step = (power[row, gate] - np.float32(LOWEST)).astype(np.int64).clip(0, BINS - 1)
        np.add.at(counts, (row, step), 1)
        level = _levels(counts, looked, range_.size - first, len(dbz))
        rays = looked[level > -np.inf]
        below = (level[level > -np.inf] + np.float32(ABOVE))[:, np.newaxis]
        result[rays] = heard[rays] & (dbz[rays] - grows < below)
    return result


def _levels(
    counts: NDArray[np.int64], looked: NDArray[np.int64], far: int, rays: int
) -> NDArray[np.float32]:
    """Return the power of the spike in each of some rays, in dB; minus infinity without one.

    ``counts`` (looked, step) are from the ``far`` gates of the rays ``looked``.
    """
    sums = np.cumsum(np.pad(counts, ((0, 0), (1, 0))), axis=1)
    same = np.zeros((rays, BINS - SAME + 1), np.int64)
    same[looked] = sums[:, SAME:] - sums[:, :-SAME]
    best = same[looked].argmax(axis=1)
    # Gates above that power may be rain that hides the spike.
    more = sums[:, -1] - sums[np.arange(len(counts)), best + SAME]
    least = SHARE * np.maximum(far - more, far / 2)
    spiked = same[looked, best] > least
    for side in (-WIDEST, WIDEST):
        spiked &= same[(looked + side) % rays, best] < least / 2
    return np.where(spiked, LOWEST + best + SAME / 2, -np.inf).astype(np.float32)
