"""The last frames in the frame that moves with the rain, taken apart into bands with a memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nowcast.lagrangian.advection import carry, departures
from nowcast.lagrangian.autoregression import BandModel, fit
from nowcast.lagrangian.decibel import to_decibel
from nowcast.lagrangian.motion import motion_field
from nowcast.lagrangian.noise import Noise
from nowcast.lagrangian.pyramid import Pyramid, compose, decompose

Float = NDArray[np.float32]


#: Factor from octave to octave by which noise is stronger at larger scales than the rain in dB: it
#: chooses quantiles, which puts the rain's edges back that make the rain's own spectrum shallow.
TILT = 2.0


@dataclass(frozen=True)
class Cascade:
    """Bands of the last two frames, moved to the place of the last one.

    Attributes
    ----------
    motion : ndarray, (2, y, x) float32
        Displacement in pixels per step.
    last : ndarray, (y, x) float32
        The last frame, mm h-1.
    past : list of Pyramid
        Of the last two frames in dB rain, oldest first.
    models : list of BandModel
        One a band.
    earlier : list of ndarray, (y, x) float32
        The frames before the last one in dB rain, moved to its place, oldest first.
    """

    motion: Float
    last: Float
    past: list[Pyramid]
    models: list[BandModel]
    earlier: list[Float]

    @classmethod
    def of(cls, rain: Float, *, spacing_km: float) -> Cascade:
        """Take apart the last frames (time >= 2, y, x) in mm h-1; up to three are used."""
        motion = motion_field(rain, spacing_km=spacing_km)
        frames = [to_decibel(frame) for frame in rain[-3:]]
        earlier = list(departures(motion, len(frames) - 1))
        moved = [carry(f, p) for f, p in zip(frames[:-1], reversed(earlier), strict=True)]
        past = [decompose(frame) for frame in (*moved, frames[-1])]
        models = fit(past)
        return cls(motion, rain[-1].copy(), past[-2:], models, moved)

    def expected(self, leads: int) -> Iterator[Float]:
        """Give the expected field of each lead, dB rain (y, x), where the last frame was."""
        last, before = self.past[-1], self.past[-2]
        ahead = [model.ahead(leads) for model in self.models]
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

    def noise(self, leads: int, seed: int, number: int) -> Iterator[Float]:
        """Give noise (y, x) of each lead with the scales of what this cascade forgets.

        Parameters
        ----------
        seed, number : int
            Decide the numbers; other numbers give independent noise.
        """
        last = self.past[-1]
        count = max(1, len(last.bands) - 1)  # a grid of few pixels has the coarsest band only
        bands, weights = last.bands[:count], last.weights[:count]
        shapes = [(band.shape[0], band.shape[1]) for band in bands]
        variances = [
            TILT**k * _variance(band, weight)
            for k, (band, weight) in enumerate(zip(bands, weights, strict=True))
        ]
        noise = Noise(shapes, variances, self.models[:count])
        return noise.fields(leads, np.random.default_rng([seed, number]))


def _variance(band: Float, weight: Float) -> float:
    """Mean square of a band where it is known, and never quite 0."""
    total = float(weight.sum(dtype=np.float64))
    squares = float((weight * band * band).sum(dtype=np.float64))
    return max(squares / total if total else 0.0, 1e-6)
