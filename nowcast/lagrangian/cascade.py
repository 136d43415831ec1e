"""The last frames in the frame that moves with the rain, taken apart into bands with a memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nowcast.lagrangian.advection import carry, origins
from nowcast.lagrangian.autoregression import BandModel, fit
from nowcast.lagrangian.decibel import to_decibel
from nowcast.lagrangian.motion import motion_and_error
from nowcast.lagrangian.noise import Noise
from nowcast.lagrangian.pyramid import Pyramid, compose, decompose

Float = NDArray[np.float32]


@dataclass(frozen=True)
class Cascade:
    """Bands of the last two frames, moved to the place of the last one.

    Attributes
    ----------
    motion : ndarray, (2, y, x) float32
        Displacement in pixels per step.
    error : ndarray, (node_y, node_x) float32
        Its standard error in m s-1, on square nodes.
    side : float
        Pixels along the side of a node.
    last : ndarray, (y, x) float32
        The last frame, mm h-1.
    past : list of Pyramid
        Of the last two frames in dB rain, oldest first.
    models : list of BandModel
        One a band.
    earlier : list of ndarray, (y, x) float32
        The frames before the last one in dB rain, moved to its place, oldest first.
    ages : tuple of float
        Of all frames, in steps before the forecast's start.
    """

    motion: Float
    error: Float
    side: float
    last: Float
    past: list[Pyramid]
    models: list[BandModel]
    earlier: list[Float]
    ages: tuple[float, ...]

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

        Parameters
        ----------
        rain : ndarray, (time, y, x) float32
        spacing_km, step_minutes : float
            Of the grid and of the forecast.
        ages : sequence of float, optional
            Of each frame, in steps before the forecast's start; by default the frames are one step
            apart, and the last one is the start.
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
        return cls(motion, error, side, last, past[-2:], fit(past, since), moved, since)

    def times(self, leads: int) -> NDArray[np.float64]:
        """Return the time of each lead since the last frame, in the unit of `models`."""
        since = np.arange(1, leads + 1, dtype=np.float64) + self.ages[-1]
        return since / np.float64(self.ages[-2] - self.ages[-1])

    def expected(self, leads: int) -> Iterator[Float]:
        """Give the expected field of each lead, dB rain (y, x), where the last frame was."""
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
        """Return noise with the scales of what this cascade forgets.

        Parameters
        ----------
        seed, number : int
            Decide the numbers; other numbers give independent noise.
        """
        last = self.past[-1]
        count = max(1, len(last.bands) - 1)  # a grid of few pixels has the coarsest band only
        bands, weights = last.bands[:count], last.weights[:count]
        shapes = [(band.shape[0], band.shape[1]) for band in bands]
        variances = [_variance(*band) for band in zip(bands, weights, strict=True)]
        return Noise(shapes, variances, self.models[:count], np.random.default_rng([seed, number]))


def _variance(band: Float, weight: Float) -> float:
    """Mean square of a band where it is known, and never quite 0."""
    total = float(weight.sum(dtype=np.float64))
    squares = float((weight * band * band).sum(dtype=np.float64))
    return max(squares / total if total else 0.0, 1e-6)
