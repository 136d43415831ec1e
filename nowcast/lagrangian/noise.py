"""Noise with the scales of rain, that grows as each scale of the rain is forgotten."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.team import over_rows
from nowcast.lagrangian.autoregression import BandModel, lagged
from nowcast.lagrangian.pyramid import grow

Float = NDArray[np.float32]

#: Fields from which on a variance of one at each pixel leaves them nearly normal; of fewer, what is
#: drawn would hardly be random any more.
ENOUGH = 5


class Noise:
    """Gaussian fields of mean 0 and variance 1 whose scales are those of what is not known.

    Each octave is an AR(1) with the correlation from lead to lead that the rain's own octave has;
    at each lead the octaves are added with the variance of the rain's that is forgotten by then.
    Soon after the start only small scales are uncertain, later the large ones too.

    Parameters
    ----------
    shapes : list of (int, int)
        Of the octaves' grids, the finest first.
    variances : list of float
        Of the rain's octaves.
    models : list of BandModel
        Their memory.
    rng : Generator
        Decides the numbers.

    References
    ----------
    Bowler, Pierce and Seed, "STEPS: a probabilistic precipitation forecasting scheme which merges
    an extrapolation nowcast with downscaled NWP", Q. J. R. Meteorol. Soc. 132 (2006), 2127-2155.
    """

    def __init__(
        self,
        shapes: list[tuple[int, int]],
        variances: list[float],
        models: list[BandModel],
        rng: np.random.Generator,
    ) -> None:
        self.models, self.rng = models, rng
        self.octaves = [np.zeros(shape, np.float32) for shape in shapes]
        self.deviations = [(variance / _gain(k)) ** 0.5 for k, variance in enumerate(variances)]
        self.time: float | None = None

    def go_on(self, time: float) -> None:
        """Renew the octaves for a later time of `BandModel`, since the last frame."""
        for octave, model in zip(self.octaves[::-1], self.models[::-1], strict=True):
            keep = 0.0 if self.time is None else lagged(model.root, time - self.time)
            _renew(octave, self.rng.standard_normal(octave.shape, np.float32), keep)
        self.time = time

    def field(self, tilt: float = 1.0) -> Float:
        """Return the field (y, x) at the time that `go_on` has come to.

        Parameters
        ----------
        tilt : float
            Factor from octave to octave by which larger scales have more variance.
        """
        assert self.time is not None
        power = 0.0
        field: Float | None = None
        for k in range(len(self.octaves) - 1, -1, -1):
            octave = self.octaves[k]
            forgotten = float(self.models[k].forgotten(np.array([self.time]))[0])
            deviation = self.deviations[k] * (tilt**k * forgotten) ** 0.5
            power += deviation**2 * _gain(k)
            part = octave * np.float32(deviation)
            if field is None:
                field = part
            else:
                field = grow(field, np.ones_like(field), (octave.shape[0], octave.shape[1]))
                field += part
        assert field is not None
        return field / np.float32(max(power, 1e-12) ** 0.5)


def evened(fields: Float) -> None:
    """Bring fields (field, y, x) to a mean square of one at each pixel, in place.

    So few fields then stand for a normal distribution better than independent ones. Fewer than
    `ENOUGH` stay as they are, and so does what is missing, NaN.
    """
    if len(fields) >= ENOUGH:
        fields /= np.sqrt(np.einsum("kyx,kyx->yx", fields, fields) / np.float32(len(fields)))


def _renew(octave: Float, white: Float, keep: float) -> None:
    """Keep a part of an octave and fill up its variance with noise.

    White noise is blurred by 1 2 1: doubled grids of it then have an even variance, and no combs.
    """
    fresh = np.float32((1 - keep**2) ** 0.5)
    rows = np.arange(len(octave))
    over_rows(_blur_and_add, (octave, rows), 64, white, np.float32(keep), fresh)


@cache
def _gain(level: int) -> float:
    """Return the variance that blurred white noise of variance 1 has after ``level`` doublings."""
    response = np.array([0.25, 0.5, 0.25])
    for _ in range(level):
        spread = np.zeros(2 * len(response) + 1)
        spread[1::2] = response
        response = np.convolve(spread, np.array([1, 4, 6, 4, 1]) / 8)
    # The mean over the phases that a pixel may have to the coarse grid.
    return float((response**2).sum() / 2**level) ** 2


@jit
def _blur_and_add(octave, rows, white, keep, fresh):
    height, width = white.shape
    quarter, half = np.float32(0.25), np.float32(0.5)
    line = np.empty(width + 2, np.float32)
    for k in range(len(rows)):
        above, below = (rows[k] - 1) % height, (rows[k] + 1) % height
        for j in range(width):
            line[j + 1] = quarter * (white[above, j] + white[below, j]) + half * white[rows[k], j]
        line[0], line[width + 1] = line[width], line[1]
        for j in range(width):
            blurred = quarter * (line[j] + line[j + 2]) + half * line[j + 1]
            octave[k, j] = keep * octave[k, j] + fresh * blurred
