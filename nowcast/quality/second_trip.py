"""Second trip: echo from beyond the unambiguous range, which the radar shows too near.

A pulse that returns after the next one was sent has another phase than the radar expects. With the
random phase of a magnetron, or a coded one, such echo is incoherent from pulse to pulse: its signal
quality index is near 0, and its velocities are random. With a klystron without a code, echo is
coherent in each trip, and nothing is found. From two sweeps of one angle ingest reads the one of
longer range; its lower pulse rate puts the second trip farther out.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.runtime.jit import jit
from nowcast.radar.polar.sweep import Sweep

Float = NDArray[np.float32]

# Rays and gates to each side in a mean, and the least number of values in it.
RAYS, GATES, FEWEST = 1, 3, 9
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
        turn = np.zeros_like(sweep.velocity)
        turn[:, :-1] = np.diff(sweep.velocity, axis=1) * np.float32(np.pi)
        turn[:, -1] = np.nan
        parts, least = np.stack([np.cos(turn), np.sin(turn)]), LEAST_STEADINESS
    else:
        return None
    false = np.zeros(sweep.dbz.shape, np.bool_)
    parts = np.ascontiguousarray(parts, np.float32)
    weakest32 = np.float32(max(weakest, -1e30))
    _judge(sweep.dbz, parts, weakest32, np.float32(least), false)
    if sweep.coherence is not None:
        _grow(sweep.dbz, parts[0], weakest32, np.float32(LEAST_AT_EDGES), false.copy(), false)
    return false


@jit
def _judge(
    dbz: Float, parts: Float, weakest: np.float32, least: np.float32, false: NDArray[np.bool_]
) -> None:
    """Mark in ``false`` the gates where the mean vector of ``parts`` (part, ray, gate) is short."""
    rays, gates = dbz.shape
    for ray in range(rays):
        for gate in range(gates):
            if not weakest <= dbz[ray, gate] < np.inf:
                continue
            squares, count = np.float32(0), 0
            for part in range(len(parts)):
                total, count = np.float32(0), 0
                for side in range(-RAYS, RAYS + 1):
                    row = (ray + side) % rays
                    for near in range(max(gate - GATES, 0), min(gate + GATES + 1, gates)):
                        value = parts[part, row, near]
                        if value == value:  # NaN is not
                            total += value
                            count += 1
                squares += total * total
            false[ray, gate] = count >= FEWEST and squares < (least * np.float32(count)) ** 2


@jit
def _grow(
    dbz: Float, coherence: Float, weakest: np.float32, least: np.float32,
    before: NDArray[np.bool_], false: NDArray[np.bool_],
) -> None:  # fmt: skip
    """Mark in ``false`` the echo of low coherence next to gates in ``before``."""
    rays, gates = dbz.shape
    for ray in range(rays):
        for gate in range(gates):
            if before[ray, gate]:
                for side in range(-1, 2):
                    row = (ray + side) % rays
                    for near in range(max(gate - 1, 0), min(gate + 2, gates)):
                        if coherence[row, near] < least and weakest <= dbz[row, near]:
                            false[row, near] = True
