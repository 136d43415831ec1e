"""Second trip: echo from beyond the unambiguous range, which the radar shows too near.

A pulse that returns after the next one was sent has another phase than the radar expects. With the
random phase of a magnetron, or a coded one, such echo is incoherent from pulse to pulse: its signal
quality index is near 0, and its velocities are random. With a klystron without a code, echo is
coherent in each trip, and nothing is found. From two sweeps of one angle ingest reads the one of
longer range; its lower pulse rate puts the second trip farther out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from nowcast.radar.polar.sweep import Sweep

Float = NDArray[np.float32]

# Rays and gates to each side in a mean, and the least number of values in it.
RAYS, GATES, FEWEST = 1, 3, 9
# Of scipy's filters: the first ray is next to the last, and there is nothing beyond the gates.
AROUND = "wrap", "constant"
# Mean signal quality index below which an echo is incoherent: with 32 pulses of noise it is 0.16,
# with rain as strong as the noise 0.45, and 0.25 at the rim of weak rain that radars still show.
LEAST_COHERENCE = 0.22
# Echo next to an incoherent one is incoherent if its own index is below this: at edges the mean has
# few values, and includes coherent rain.
LEAST_AT_EDGES = 0.3
# Length of the mean unit vector of turns from gate to gate, below which velocities are random: for
# 18 random ones it is 0.24, for rain with velocities that differ by 1/5 of Nyquist's it is 0.82.
LEAST_STEADINESS = 0.5


def second_trip(sweep: Sweep, weakest: float) -> NDArray[np.bool_] | None:
    """Return the gates with incoherent echo, (rays, gates) bool; None without a moment for it.

    The signal quality index decides, or else the velocity; echo below ``weakest`` dBZ is ignored.
    """
    assert sweep.dbz is not None
    if sweep.coherence is not None:
        parts, least = sweep.coherence[np.newaxis], LEAST_COHERENCE
    elif sweep.velocity is not None:
        turn = np.diff(sweep.velocity, axis=1, append=np.float32(np.nan)) * np.float32(np.pi)
        parts, least = np.stack([np.cos(turn), np.sin(turn)]), LEAST_STEADINESS
    else:
        return None
    known = np.isfinite(parts)
    count = np.rint(_sums(known[0]))
    squares = sum(np.square(_sums(part)) for part in np.where(known, parts, 0))
    echo = (sweep.dbz >= weakest) & np.isfinite(sweep.dbz)
    false = echo & (count >= FEWEST) & (squares < np.square(np.float32(least) * count))
    if sweep.coherence is not None:
        near = ndimage.maximum_filter(false, 3, mode=AROUND)
        false |= near & echo & (sweep.coherence < np.float32(LEAST_AT_EDGES))
    return false


def _sums(values: NDArray[Any]) -> Float:
    """Return the sums of values in the surroundings of each gate, 0 beyond the last one."""
    sides = 2 * RAYS + 1, 2 * GATES + 1
    means: Float = ndimage.uniform_filter(values.astype(np.float32), sides, mode=AROUND)
    return means * np.float32(sides[0] * sides[1])
