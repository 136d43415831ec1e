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
    rays = len(dbz)
    power = dbz - (20 * np.log10(np.maximum(range_, 1.0) / 1000)).astype(np.float32)
    far = range_ >= NEAREST
    heard = np.isfinite(power)
    if not (far & heard.any(axis=0)).any():
        return np.zeros(dbz.shape, bool)
    # A histogram of each ray's powers in steps of 1 dB.
    lowest = int(np.floor(power[heard].min()))
    bins = int(np.ceil(power[heard].max())) - lowest + SAME + 1
    row, column = np.nonzero(heard & far)
    step = (power[row, column] - lowest).astype(np.int64)
    counts = np.bincount(row * bins + step, minlength=rays * bins).reshape(rays, bins)
    sums = np.cumsum(np.pad(counts, ((0, 0), (1, 0))), axis=1)
    same = sums[:, SAME:] - sums[:, :-SAME]
    best = same.argmax(axis=1)
    ray = np.arange(rays)
    # Gates with more than that power may have a spike under the rain.
    more = sums[:, -1] - sums[ray, best + SAME]
    least = SHARE * np.maximum(far.sum() - more, far.sum() / 2)
    alone = [same[(ray + side) % rays, best] < least / 2 for side in (-WIDEST, WIDEST)]
    spiked = (same[ray, best] > least) & alone[0] & alone[1]
    level = lowest + best + SAME / 2
    return np.asarray(heard & spiked[:, np.newaxis] & (power < (level + ABOVE)[:, np.newaxis]))
