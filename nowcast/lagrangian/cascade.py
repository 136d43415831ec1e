"""The last frames in the frame that moves with the rain, in bands with a memory; arrivals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import map_coordinates

from nowcast.lagrangian.advection import COARSENING, carry, departures, origins
from nowcast.lagrangian.blocks import enlarge
from nowcast.lagrangian.frames import BASELINE, FRAMES, apart, to_decibel
from nowcast.lagrangian.motion import motion_and_error
from nowcast.lagrangian.pyramid import BandModel, Pyramid, compose, decompose, fit
from nowcast.lagrangian.ranks import regional_ranks
from nowcast.lagrangian.texture import Noise

Float = NDArray[np.float32]

#: Standard error of motion in m s-1 at which margins count as the numbers say, and up to which
#: factor of it they count less or more; chosen over all sources of docs/measurements/forecast.md.
USUAL, FACTOR = 3.7, 4.0


@dataclass(frozen=True)
class Cascade:
    """Bands of the last two frames, moved to the place of the last one."""

    motion: Float  #: Displacement in pixels per step, (2, y, x).
    error: Float  #: Its standard error in m s-1, on square nodes, (node_y, node_x).
    side: float  #: Pixels along the side of a node.
    last: Float  #: The last frame, mm h-1, (y, x).
    past: list[Pyramid]  #: Of the last two frames in dB rain, oldest first.
    models: list[BandModel]  #: One a band.
    #: The frames before the last one in dB rain, moved to its place, oldest first, (y, x).
    earlier: list[Float]
    ages: tuple[float, ...]  #: Of all frames, in steps before the forecast's start.
    spacing_km: float  #: Distance of the grid's points.
    step_minutes: float  #: Time between the frames of the forecast.

    @classmethod
    def of(
        cls,
        rain: Float,
        *,
        spacing_km: float,
        step_minutes: float,
        ages: Sequence[float] | None = None,
    ) -> Cascade:
        """Take apart the last frames (time >= 2, y, x) in mm h-1.

        Ages are in steps before the forecast's start; by default the frames are one step apart, and
        the last one is the start.
        """
        since = tuple(map(float, range(len(rain))[::-1] if ages is None else ages))
        motion, error, side = motion_and_error(
            rain, spacing_km=spacing_km, step_minutes=step_minutes, ages=since
        )
        frames = [to_decibel(frame) for frame in rain]
        moved = [
            carry(frame, origins(motion, age - since[-1]))
            for frame, age in zip(frames[:-1], since, strict=False)
        ]
        past = [decompose(frame) for frame in (*moved, frames[-1])]
        last = rain[-1].copy()
        return cls(
            motion, error, side, last, past[-2:], fit(past, since), moved, since, spacing_km,
            step_minutes,
        )  # fmt: skip

    @classmethod
    def of_past(cls, past: Float, spacing_km: float, step_minutes: float) -> Cascade:
        """Take apart the frames of ``past`` (time, y, x) that a forecast looks at."""
        ages = np.arange(len(past))[::-1]
        picks = apart((ages * step_minutes).tolist(), FRAMES, BASELINE)
        return cls.of(
            past[picks], spacing_km=spacing_km, step_minutes=step_minutes, ages=ages[picks].tolist()
        )

    def times(self, leads: int) -> NDArray[np.float64]:
        """Return the time of each lead since the last frame, in the unit of `models`."""
        since = np.arange(1, leads + 1, dtype=np.float64) + self.ages[-1]
        return since / np.float64(self.ages[-2] - self.ages[-1])

    def expected(self, leads: int) -> Iterator[Float]:
        """Yield the expected field of each lead, dB rain (y, x), at the last frame's place."""
        last, before = self.past[-1], self.past[-2]
        times = self.times(leads)
        ahead = [model.ahead(times) for model in self.models]
        for lead in range(leads):
            bands = []
            for k, model in enumerate(self.models):
                recent, older = (np.float32(w) for w in ahead[k][lead])
                mean = np.float32(model.mean)
                # Where the earlier frame saw nothing, its anomaly is the last one's.
                earlier = np.where(before.weights[k] > 0, before.bands[k], last.bands[k])
                bands.append(mean + recent * (last.bands[k] - mean) + older * (earlier - mean))
            field = compose(bands, last.weights)
            field[last.weights[0] == 0] = np.nan
            yield field

    def noise(self, seed: int, number: int) -> Noise:
        """Return noise with the scales that this cascade forgets; independent for each number."""
        last = self.past[-1]
        count = max(1, len(last.bands) - 1)  # a grid of few pixels has the coarsest band only
        bands, weights = last.bands[:count], last.weights[:count]
        shapes = [(band.shape[0], band.shape[1]) for band in bands]
        variances = [_variance(*band) for band in zip(bands, weights, strict=True)]
        return Noise(shapes, variances, self.models[:count], np.random.default_rng([seed, number]))


def _variance(band: Float, weight: Float) -> float:
    """Mean square of a band's known pixels; always above 0."""
    total = float(weight.sum(dtype=np.float64))
    squares = float((weight * band * band).sum(dtype=np.float64))
    return max(squares / total if total else 0.0, 1e-6)


@dataclass(frozen=True)
class Arrival:
    """Fields at one lead time, moved to the rain's place by then."""

    lead: int  #: Steps ahead, from 1.
    minutes: float  #: Lead time.
    #: Where the air at the nodes came from, see `nowcast.lagrangian.advection.departures`, (2,
    #: node_y, node_x) float32.
    points: Float
    moved: Float  #: The last frame, carried along, mm h-1, (y, x).
    expected: Float  #: The expected field, dB rain, (y, x).
    rank: Float  #: Its ranks, see `nowcast.lagrangian.ranks.regional_ranks`, (y, x).
    #: Factor by which margins of ranks count: 1 where the error of motion is `USUAL`, less where
    #: the rain may have gone elsewhere, (y, x).
    sure: Float


def arrivals(
    cascade: Cascade, leads: int, *, only: frozenset[int] | None = None
) -> Iterator[Arrival]:
    """Yield the arrival of each lead from 1 on, or of the leads in ``only``."""
    known = np.sqrt(USUAL / np.clip(cascade.error, USUAL / FACTOR, USUAL * FACTOR))
    paths = departures(cascade.motion, leads, before=cascade.ages[-1])
    for lead, (field, points) in enumerate(zip(cascade.expected(leads), paths, strict=True), 1):
        if only is None or lead in only:
            expected = carry(field, points)
            moved = carry(cascade.last, points)
            rank = regional_ranks(expected, moved, cascade.spacing_km)
            nodes = (points + 0.5) / cascade.side - 0.5
            sure = map_coordinates(known, nodes, order=1, mode="nearest")
            sure = enlarge(sure[np.newaxis], moved.shape, COARSENING)[0]
            minutes = lead * cascade.step_minutes
            yield Arrival(lead, minutes, points, moved, expected, rank, sure)
