"""Inputs of a network at one lead time, in the frame that moves with the rain."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nowcast.lagrangian.advection import carry
from nowcast.lagrangian.blocks import known_means, resample
from nowcast.lagrangian.cascade import Arrival, Cascade
from nowcast.lagrangian.exceedance import (
    THRESHOLDS,
    MarginTable,
    around,
    coefficients,
    dryness,
    logit,
)
from nowcast.lagrangian.frames import DRY_BELOW, DRY_DECIBEL, to_decibel

Float = NDArray[np.float32]

#: Side in km of the networks' cells; finer detail is lost within minutes.
CELL_KM = 2.0
#: Number of earlier frames in the inputs; if there are fewer, the first is repeated.
EARLIER = 2
#: Inputs that are frames, from the earliest to the last; a recurrent network reads them in turn.
FRAMES = EARLIER + 1
#: Inputs that are maps, and inputs that are one number for the whole grid.
MAPS, NUMBERS = FRAMES + 6 + len(THRESHOLDS), 8
CHANNELS = MAPS + NUMBERS
#: Octaves whose memory is an input, in km.
OCTAVES_KM = (8.0, 32.0)
#: Largest magnitude of an input.
MOST = 5.0


def cell_side(spacing_km: float) -> int:
    """Return the number of pixels along the side of a cell."""
    return max(1, round(CELL_KM / spacing_km))


def features(cascade: Cascade, arrival: Arrival, table: MarginTable) -> Float:
    """Return the inputs of a network, (cell_y, cell_x, `CHANNELS`) float32.

    No input depends on absolute rain rates: frames are in dB relative to the mean rain of the last
    frame, and the rest is ranks, probabilities, motion and time, which are the same for every
    radar. ``table`` makes the probabilities that the network corrects.
    """
    side, six = cell_side(cascade.spacing_km), np.float32(6)
    at = table.at(THRESHOLDS, arrival.minutes)
    numbers, least = coefficients(arrival.rank, arrival.moved, at, THRESHOLDS)
    odds, share = known_means(odds_of(arrival.rank, least), side)
    dry, _ = known_means(dryness(arrival.expected), side)
    decibel = to_decibel(arrival.moved)
    wet = decibel[decibel > np.float32(DRY_DECIBEL)]  # False where missing
    mean = np.float32(wet.mean()) if wet.size else np.float32(0)
    last, _ = known_means(decibel, side)
    squares, _ = known_means(decibel * decibel, side)
    rough = np.sqrt(np.maximum(squares - last * last, 0)) / six
    last = (last - mean) / six
    expected, _ = known_means(arrival.expected, side)
    maps = []
    for earlier in _earlier(cascade, EARLIER):
        moved, seen = known_means(carry(earlier, arrival.points), side)
        # Where the earlier frame is missing, the last one is used.
        maps.append(np.where(seen > 0, (moved - mean) / six, last))
    speed, growth = _motion(cascade, side)
    slope, at_zero, rest, of_dry = numbers.T[..., np.newaxis, np.newaxis]
    base = known_means(arrival.sure, side)[0] * (slope * odds + at_zero) + rest + of_dry * dry
    cells = around(arrival.moved, THRESHOLDS, at, cascade.spacing_km)
    base = base + resample(*cells, odds.shape, side)
    maps += [last, (expected - mean) / six, dry, rough, share, speed / np.float32(50), growth]
    maps += list(np.clip(base, -9, 9) / np.float32(3))
    for number in _numbers(cascade, arrival):
        maps.append(np.full(last.shape, number, np.float32))
    made = np.clip(np.stack(maps, axis=-1), -MOST, MOST)
    made[share == 0, :MAPS] = 0
    return made


def odds_of(rank: Float, least: np.float32) -> Float:
    """Return the logits of ranks (y, x) clipped to ``least`` ... 1 - ``least``; NaN stays NaN."""
    clipped = np.clip(rank, least, np.float32(1) - least)
    return np.log(clipped / (np.float32(1) - clipped))


def _earlier(cascade: Cascade, count: int) -> list[Float]:
    """Return the earlier frames in dB, moved to the position of the last one, oldest first."""
    frames = cascade.earlier[-count:]
    return [frames[0]] * (count - len(frames)) + frames


def _motion(cascade: Cascade, every: int) -> tuple[Float, Float]:
    """Return the speed in km/h, and the divergence per hour, at every ``every``-th pixel."""
    motion, hourly = cascade.motion[:, ::every, ::every], np.float32(60 / cascade.step_minutes)
    speed = np.hypot(motion[0], motion[1]) * np.float32(cascade.spacing_km) * hourly
    if min(speed.shape) < 2:
        return speed, np.zeros_like(speed)
    divergence = np.gradient(motion[0], every, axis=0) + np.gradient(motion[1], every, axis=1)
    return speed, divergence.astype(np.float32) * hourly


def _numbers(cascade: Cascade, arrival: Arrival) -> list[float]:
    """Return the features of the whole grid: lead, step, spacing, memory, wet area and trend."""
    spacing_km, step_minutes, memory = cascade.spacing_km, cascade.step_minutes, []
    for octave in OCTAVES_KM:
        # Band k has wavelengths from 2 to 4 times its pixels, which are 2^k of the grid's.
        band = round(np.log2(octave / (2 * spacing_km)))
        model = cascade.models[min(max(band, 0), len(cascade.models) - 1)]
        memory.append(float(model.ahead(cascade.times(arrival.lead)[-1:]).sum()))
    floor = np.float32(10 * np.log10(DRY_BELOW))
    last, first = to_decibel(cascade.last), cascade.earlier[0]
    both = np.isfinite(last) & np.isfinite(first)
    shares = [_odds(field[both] >= floor) for field in (last, first)]
    known = arrival.moved[np.isfinite(arrival.moved)]
    minutes = (cascade.ages[0] - cascade.ages[-1]) * step_minutes
    return [
        np.log2(arrival.minutes / 30),
        np.log2(step_minutes / 10),
        np.log2(cell_side(spacing_km) * spacing_km / CELL_KM),
        *memory,
        _odds(known >= np.float32(DRY_BELOW)) / 3,
        _odds(known >= np.float32(1)) / 3,
        (shares[0] - shares[1]) * 30 / minutes,
    ]


def _odds(reached: NDArray[np.bool_]) -> float:
    """Return the logit of a fraction of pixels."""
    count = max(reached.size, 1)
    return float(logit(np.clip(reached.sum() / count, 0.5 / count, 1 - 0.5 / count)))
