"""Texture of rain: noise with its scales, and an expected field that looks like rain."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.team import over_rows
from nowcast.lagrangian.frames import DRY_BELOW, DRY_DECIBEL, to_decibel
from nowcast.lagrangian.pyramid import BandModel, grow, lagged
from nowcast.lagrangian.ranks import match, ranks

Float = NDArray[np.float32]

#: Fields from which on a variance of one at each pixel leaves them nearly normal; fewer fields
#: would hardly be random any more.
ENOUGH = 5


class Noise:
    """Gaussian fields of mean 0 and variance 1 with the scales that are uncertain by then.

    Each octave is an AR(1) with the correlation from lead to lead of the rain's own octave. At each
    lead, octaves are added with the variance that the rain's octaves have forgotten by then: soon
    after the start only small scales are uncertain, later the large ones too.

    - ``shapes``: of the octaves' grids, the finest first.
    - ``variances``: of the rain's octaves.
    - ``models``: their memory.
    - ``rng``: decides the numbers.

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

        - ``tilt``: factor from octave to octave by which larger scales have more variance.
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

    A few such fields represent a normal distribution better than independent ones. Fewer than
    `ENOUGH` fields do not change, nor do missing pixels, NaN.
    """
    if len(fields) >= ENOUGH:
        fields /= np.sqrt(np.einsum("kyx,kyx->yx", fields, fields) / np.float32(len(fields)))


def _renew(octave: Float, white: Float, keep: float) -> None:
    """Keep a share of an octave, and restore its variance with noise.

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


#: Wavelengths in km of the detail by which members are as sharp as rain.
DETAIL_KM = (4.0, 16.0)
#: Tilt of noise that members begin with, the least and largest one, and the power of the sharpness
#: by which it changes first: noise chooses quantiles, which adds the rain's edges.
TILT, TILTS, RESPONSE = 1.0, (0.1, 8.0), 1.0
#: Members on trial for a tilt, and the logarithm of the sharpness that is near enough.
TRIALS, NEAR = 4, 0.05
#: Times that the spectrum and then the distribution are set: neither changes much afterwards.
ROUNDS = 3
#: Rings of wavenumbers, of equal width in the logarithm, in an octave.
RINGS = 8


def textured(expected: Float, moved: Float) -> Float:
    """Return an expected field with the spectrum and the rain rates of the last frame, moved.

    Large scales come from the rain that both fields have; small scales, which the expected field
    has lost, come from the last frame. Then, in turn, the power by wavenumber and the distribution
    of rates are set to the frame's.

    - ``expected`` (y, x): rain rate in mm h-1, such as S-PROG's field; NaN is missing.
    - ``moved`` (y, x): the last frame carried to the lead time, mm h-1; NaN is missing.
    - returns (y, x): mm h-1; NaN where either is.

    References
    ----------
    Schreiber and Schmitz, "Improved surrogate data for nonlinearity tests", Phys. Rev. Lett. 77
    (1996), 635-638, whose iterations these are.
    """
    known = np.isfinite(expected) & np.isfinite(moved)
    rates = np.where(known, moved, np.float32(np.nan))
    last = _decibel(np.where(known, moved, np.float32(0)))
    spectrum = fft.rfft2(last + _decibel(np.where(known, expected, np.float32(0))))
    ring = _rings(last.shape)
    wanted = _power(fft.rfft2(last), ring)
    power = _power(spectrum, ring)
    made = rates
    for _ in range(ROUNDS):
        gain = np.sqrt(wanted / np.maximum(power, np.finfo(np.float32).tiny))
        spectrum *= gain.astype(np.float32)[ring]
        field = fft.irfft2(spectrum, s=last.shape)
        made = match(ranks(np.where(known, field, np.float32(np.nan))), rates)
        # The rates change the spectrum: what they took away is asked for the next time.
        power = _power(fft.rfft2(_decibel(np.where(known, made, np.float32(0)))), ring)
    return made


def sharpened(
    make: Callable[[float], Float], tilt: float, frame: Float, spacing_km: float
) -> float:
    """Return the tilt of noise at which a member is as sharp as a frame, by secants.

    - ``make``: gives the member (y, x) in mm h-1 at a tilt, see
      `nowcast.lagrangian.texture.Noise.field`.
    - ``tilt``: to begin with.
    - ``frame`` (y, x): such as the last one, moved; rain rate in mm h-1, NaN is missing.
    """
    ring = _rings(frame.shape)
    number = 2 ** ((np.arange(ring.max() + 1) - 1) / RINGS)  # waves along the longer side
    shortest, longest = (max(frame.shape) * spacing_km / km for km in DETAIL_KM)
    # Rings get wider as wavenumbers do: so each wavenumber counts alike.
    weight = np.where((number >= longest) & (number <= shortest), number, 0)
    least, most = np.log(TILTS)
    at, slope = float(np.log(tilt)), -1 / RESPONSE
    before: tuple[float, float] | None = None
    for _ in range(TRIALS):
        member = make(float(np.exp(at)))
        known = np.isfinite(member) & np.isfinite(frame)
        power, wanted = (
            _power(fft.rfft2(_rates(field, known)), ring) @ weight for field in (member, frame)
        )
        if not (power and wanted):
            return tilt
        excess = float(np.log(power / wanted))
        if before is not None and at != before[0]:
            slope = min((excess - before[1]) / (at - before[0]), -0.1)
        before = at, excess
        if abs(excess) < NEAR:
            break
        at = float(np.clip(at - np.clip(excess / slope, -1, 1), least, most))
    return float(np.exp(at))


def _rates(field: Float, known: NDArray[np.bool_]) -> Float:
    return np.where(known, to_decibel(field), np.float32(DRY_DECIBEL))


def _decibel(rain: Float) -> Float:
    return 10 * np.log10(np.maximum(rain, np.float32(DRY_BELOW)))


def _rings(shape: tuple[int, int]) -> NDArray[np.int64]:
    """Return the ring of each wavenumber of ``rfft2``; the mean is alone in the first."""
    longest = max(shape)
    number = np.hypot(
        fft.fftfreq(shape[0])[:, np.newaxis] * longest, fft.rfftfreq(shape[1]) * longest
    )
    return np.where(number > 0, 1 + np.round(RINGS * np.log2(np.maximum(number, 1))), 0).astype(int)


def _power(spectrum: NDArray[np.complexfloating], ring: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the mean power in each ring."""
    power = np.bincount(ring.ravel(), (np.abs(spectrum) ** 2).ravel())
    return power / np.maximum(np.bincount(ring.ravel()), 1)
