"""Texture: ground, sea and insects are rough where rain is smooth, by fuzzy membership.

After Gourley, Tabary and Parent du Châtelet (2007, Journal of Atmospheric and Oceanic Technology
24): each of four properties of a gate's surroundings says from 0 (rain) to 1 (not) what the gate
is, and their weighted mean decides. What a sweep does not have takes no part.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.runtime.jit import jit
from nowcast.radar.polar.sweep import Sweep

Float = NDArray[np.float32]

# Rays and gates to each side that are looked at.
RAYS, GATES = 1, 3
# For each property: its weight, and the values from which (0) and to which (1) it says less rain.
# Root mean square of the differences between neighbouring gates: reflectivity, dB; differential
# phase, degrees. Mean and standard deviation of the correlation coefficient.
PROPERTIES = np.array(
    [[0.4, 5.0, 12.0], [0.25, 15.0, 45.0], [0.3, 0.95, 0.75], [0.05, 0.05, 0.15]], np.float32
)
# An echo whose mean says more than this is no rain.
LIMIT = 0.5


def texture(sweep: Sweep, weakest: float) -> NDArray[np.bool_]:
    """Return the gates that are rougher than rain, (rays, gates) bool.

    Parameters
    ----------
    sweep : Sweep
        With reflectivity; differential phase and correlation are used where it has them.
    weakest : float
        dBZ from which on an echo is looked at.
    """
    assert sweep.dbz is not None
    none = np.empty((0, 0), np.float32)
    moments = [
        none if moment is None else np.ascontiguousarray(moment, np.float32)
        for moment in (sweep.dbz, sweep.phidp, sweep.rhohv)
    ]
    false = np.zeros(sweep.dbz.shape, np.bool_)
    _judge(*moments, np.float32(max(weakest, -1e30)), PROPERTIES, np.float32(LIMIT), false)
    return false


@jit
def _judge(
    dbz: Float, phidp: Float, rhohv: Float, weakest: np.float32, properties: Float,
    limit: np.float32, false: NDArray[np.bool_],
) -> None:  # fmt: skip
    """Write which gates are no rain to ``false``."""
    rays, gates = dbz.shape
    for ray in range(rays):
        for gate in range(gates):
            if not weakest <= dbz[ray, gate] < np.inf:
                continue
            first, last = max(gate - GATES, 0), min(gate + GATES, gates - 1)
            mean = deviation = phase = np.float32(np.nan)
            if rhohv.size:
                mean, deviation = _mean_and_deviation(rhohv, ray, first, last)
            step = _roughness(dbz, ray, first, last, np.float32(0))
            total, score = np.float32(0), np.float32(0)
            for place, value in ((2, mean), (3, deviation), (0, step)):
                total, score = _add(total, score, properties[place], value)
            # The phase takes longest, and cannot turn the judgement on most of the rain.
            if phidp.size and score + properties[1, 0] > limit * (total + properties[1, 0]):
                phase = _roughness(phidp, ray, first, last, np.float32(360))
                total, score = _add(total, score, properties[1], phase)
            false[ray, gate] = score > limit * total


@jit
def _add(
    total: np.float32, score: np.float32, rule: Float, value: np.float32
) -> tuple[np.float32, np.float32]:
    """Add the weight of a property and its part of the score; nothing for NaN."""
    if math.isnan(value):
        return total, score
    part = min(max((value - rule[1]) / (rule[2] - rule[1]), np.float32(0)), np.float32(1))
    return total + rule[0], score + rule[0] * part


@jit
def _roughness(values: Float, middle: int, first: int, last: int, circle: np.float32) -> np.float32:
    """Return the root mean square difference of neighbouring gates; of angles the short way."""
    total, count = np.float32(0), 0
    for side in range(-RAYS, RAYS + 1):
        ray = (middle + side) % values.shape[0]
        for gate in range(first, last):
            step = values[ray, gate + 1] - values[ray, gate]
            if circle > 0:
                step -= circle * np.float32(math.floor(step / circle + np.float32(0.5)))
            if abs(step) < np.inf:
                total += step * step
                count += 1
    return np.float32(math.sqrt(total / count)) if count else np.float32(np.nan)


@jit
def _mean_and_deviation(
    values: Float, middle: int, first: int, last: int
) -> tuple[np.float32, np.float32]:
    """Return the mean of the gates around one and their standard deviation."""
    total, squares, count = np.float32(0), np.float32(0), 0
    for side in range(-RAYS, RAYS + 1):
        ray = (middle + side) % values.shape[0]
        for gate in range(first, last + 1):
            value = values[ray, gate]
            if not math.isnan(value):
                total += value
                squares += value * value
                count += 1
    if not count:
        return np.float32(np.nan), np.float32(np.nan)
    mean = total / np.float32(count)
    spread = max(squares / np.float32(count) - mean * mean, np.float32(0))
    return mean, np.float32(math.sqrt(spread))
