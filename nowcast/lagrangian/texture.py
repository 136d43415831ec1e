"""Texture: a field that looks like rain, of an expected field and the last frame, moved."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from nowcast.lagrangian.decibel import DRY_BELOW, DRY_DECIBEL, to_decibel
from nowcast.lagrangian.ranks import match, ranks

Float = NDArray[np.float32]

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

    Large scales are where the two fields agree that rain is; small ones, which the expected field
    has lost, are those of the last frame. Then power by wavenumber and the distribution of rates
    are set to those of the frame, one after the other.

    Parameters
    ----------
    expected : ndarray, (y, x) float32
        Rain rate in mm h-1, such as S-PROG's field; NaN is missing.
    moved : ndarray, (y, x) float32
        The last frame carried to the lead time, mm h-1; NaN is missing.

    Returns
    -------
    ndarray, (y, x) float32
        mm h-1; NaN where either is.

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

    Parameters
    ----------
    make : callable
        Gives the member (y, x) in mm h-1 at a tilt, see `nowcast.lagrangian.noise.Noise.field`.
    tilt : float
        To begin with.
    frame : ndarray, (y, x) float32
        Such as the last one, moved; rain rate in mm h-1, NaN is missing.
    spacing_km : float
        Of the pixels.
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
