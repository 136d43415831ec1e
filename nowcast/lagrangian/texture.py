"""Texture: a field that looks like rain, of an expected field and the last frame, moved."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from nowcast.lagrangian.decibel import DRY_BELOW, DRY_DECIBEL, to_decibel
from nowcast.lagrangian.ranks import match, ranks

Float = NDArray[np.float32]

#: Wavelengths in km of the detail by which members are as sharp as rain.
DETAIL_KM = (4.0, 16.0)
#: Tilt of noise that members begin with, the least and largest one, and the power of the sharpness
#: by which it changes from lead to lead: noise chooses quantiles, which adds the rain's edges.
TILT, TILTS, RESPONSE = 1.0, (0.4, 4.0), 0.8
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
    field = last + _decibel(np.where(known, expected, np.float32(0)))
    ring = _rings(field.shape)
    wanted = _power(fft.rfft2(last), ring)
    made = rates
    for _ in range(ROUNDS):
        spectrum = fft.rfft2(field)
        gain = np.sqrt(wanted / np.maximum(_power(spectrum, ring), np.finfo(np.float32).tiny))
        field = fft.irfft2(spectrum * gain.astype(np.float32)[ring], s=field.shape)
        made = match(ranks(np.where(known, field, np.float32(np.nan))), rates)
        field = _decibel(np.where(known, made, np.float32(0)))
    return made


def tilted(tilt: float, member: Float, moved: Float, spacing_km: float) -> float:
    """Return the tilt of noise by which members become as sharp as the last frame, moved.

    Parameters
    ----------
    tilt : float
        Of the noise that the member was made with, see `nowcast.lagrangian.noise.Noise.ahead`.
    member, moved : ndarray, (y, x) float32
        Rain rate in mm h-1; NaN is missing.
    spacing_km : float
        Of the pixels.
    """
    known = np.isfinite(member) & np.isfinite(moved)
    ring = _rings(member.shape)
    spectra = [
        _power(fft.rfft2(np.where(known, to_decibel(field), np.float32(DRY_DECIBEL))), ring)
        for field in (member, moved)
    ]
    number = 2 ** ((np.arange(len(spectra[0])) - 1) / RINGS)  # waves along the longer side
    shortest, longest = (max(member.shape) * spacing_km / km for km in DETAIL_KM)
    # Rings get wider as wavenumbers do: so each wavenumber counts alike.
    weight = np.where((number >= longest) & (number <= shortest), number, 0)
    power, wanted = (float(spectrum @ weight) for spectrum in spectra)
    if not (power and wanted):
        return tilt
    return float(np.clip(tilt * (power / wanted) ** RESPONSE, *TILTS))


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
