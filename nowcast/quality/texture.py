"""Texture: ground, sea and insects are rougher than rain, by fuzzy membership.

After Gourley, Tabary and Parent du Châtelet (2007, Journal of Atmospheric and Oceanic Technology
24): each of four properties of a gate's surroundings has a score from 0 (rain) to 1 (no rain), and
their weighted mean decides. Properties that a sweep lacks are left out.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.runtime.jit import jit
from nowcast.radar.polar.sweep import Sweep

Float = NDArray[np.float32]

# Rays and gates to each side in a gate's surroundings.
RAYS, GATES = 1, 3
# Gates beyond an echo that are summed with it, since long runs are cheaper.
AHEAD = 24
# For each property: its weight, and its values for the scores 0 (rain) and 1 (no rain).
# Root mean square of the differences between neighbouring gates: reflectivity, dB; differential
# phase, degrees. Mean and standard deviation of the correlation coefficient.
PROPERTIES = np.array(
    [[0.4, 5.0, 12.0], [0.25, 15.0, 45.0], [0.3, 0.95, 0.75], [0.05, 0.05, 0.15]], np.float32
)
# An echo with a mean score above this is no rain.
LIMIT = 0.5


def texture(sweep: Sweep, weakest: float) -> NDArray[np.bool_]:
    """Return the gates that are rougher than rain, (rays, gates) bool.

    Differential phase and correlation are used if the sweep has them; echo below ``weakest`` dBZ is
    ignored.
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
    """Mark the gates that are no rain in ``false``."""
    rays, gates = dbz.shape
    # Sums over the three rays around a gate: of squared differences, correlation and its squares,
    # each with its count; seven of these add up to the sums of a gate's surroundings.
    columns = np.zeros((5, gates), np.float32)
    for ray in range(rays):
        summed = 0
        for gate in range(gates):
            if not weakest <= dbz[ray, gate] < np.inf:
                continue
            first, last = max(gate - GATES, 0), min(gate + GATES, gates - 1)
            if last >= summed:
                ahead = min(last + AHEAD, gates - 1)
                _sum_columns(dbz, rhohv, ray, max(first, summed), ahead, columns)
                summed = ahead + 1
            squares = steps = np.float32(0)
            for column in range(first, last):
                squares += columns[0, column]
                steps += columns[1, column]
            mean = deviation = step = phase = np.float32(np.nan)
            if steps:
                step = np.float32(math.sqrt(squares / steps))
            if rhohv.size:
                mean, deviation = _mean_and_deviation(columns, first, last)
            total, score = np.float32(0), np.float32(0)
            total, score = _add(total, score, properties, 2, mean)
            total, score = _add(total, score, properties, 3, deviation)
            total, score = _add(total, score, properties, 0, step)
            # The phase takes longest, and cannot change the result for most of the rain.
            if phidp.size and score + properties[1, 0] > limit * (total + properties[1, 0]):
                phase = _roughness(phidp, ray, first, last)
                total, score = _add(total, score, properties, 1, phase)
            false[ray, gate] = score > limit * total


@jit
def _sum_columns(
    dbz: Float, rhohv: Float, middle: int, first: int, last: int, columns: Float
) -> None:
    """Write the sums of some gates over the rays around ``middle``, see `_judge`."""
    none, one = np.float32(0), np.float32(1)
    for part in range(len(columns)):
        for gate in range(first, last + 1):
            columns[part, gate] = none
    for side in range(-RAYS, RAYS + 1):
        ray = (middle + side) % dbz.shape[0]
        for gate in range(first, min(last + 1, dbz.shape[1] - 1)):
            step = dbz[ray, gate + 1] - dbz[ray, gate]
            known = abs(step) < np.inf
            columns[0, gate] += step * step if known else none
            columns[1, gate] += one if known else none
        if rhohv.size:
            for gate in range(first, last + 1):
                value = rhohv[ray, gate]
                known = value == value  # NaN is not
                columns[2, gate] += value if known else none
                columns[3, gate] += value * value if known else none
                columns[4, gate] += one if known else none


@jit
def _mean_and_deviation(columns: Float, first: int, last: int) -> tuple[np.float32, np.float32]:
    """Return the mean of some gates' values and their standard deviation; NaN without any."""
    total = squares = count = np.float32(0)
    for column in range(first, last + 1):
        total += columns[2, column]
        squares += columns[3, column]
        count += columns[4, column]
    mean = total / count
    return mean, np.float32(math.sqrt(max(squares / count - mean * mean, np.float32(0))))


@jit
def _add(
    total: np.float32, score: np.float32, properties: Float, place: int, value: np.float32
) -> tuple[np.float32, np.float32]:
    """Add a property's weight and weighted score; add nothing for NaN."""
    if math.isnan(value):
        return total, score
    weight, least, most = properties[place, 0], properties[place, 1], properties[place, 2]
    part = min(max((value - least) / (most - least), np.float32(0)), np.float32(1))
    return total + weight, score + weight * part


@jit
def _roughness(phase: Float, middle: int, first: int, last: int) -> np.float32:
    """Return the root mean square of neighbouring gates' differences, in degrees, the short way."""
    total, count, circle = np.float32(0), 0, np.float32(360)
    for side in range(-RAYS, RAYS + 1):
        ray = (middle + side) % phase.shape[0]
        for gate in range(first, last):
            step = phase[ray, gate + 1] - phase[ray, gate]
            step -= circle * np.float32(math.floor(step / circle + np.float32(0.5)))
            if abs(step) < np.inf:
                total += step * step
                count += 1
    return np.float32(math.sqrt(total / count)) if count else np.float32(np.nan)
