"""Radially averaged power spectra of rain: how much detail a forecast has left at each scale."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import fft

#: Rain rate in mm h-1 below which a pixel is dry, and the value in dB that it then gets: 5 dB lower
#: than the weakest rain, so that the edges of rain count but do not rule.
DRY, DRY_DECIBEL = 0.1, -15.0


def radial_power(
    rain: NDArray[np.float32], spacing: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Power of the rain in dB by wavelength, averaged over directions.

    Parameters
    ----------
    rain : ndarray, (y, x) float32
        Rain rate in mm h-1; missing pixels count as dry, so mask the fields that are to be
        compared alike.
    spacing : float
        Of the pixels, in km.

    Returns
    -------
    wavelength : ndarray, (max(y, x) // 2 - 1,) float64
        In km, the long ones first; from the longer side of the grid down to two pixels.
    power : ndarray, same shape, float64
        Mean squared modulus of the Fourier coefficients, whose squares sum up to the field's
        mean square.

    References
    ----------
    Ruzanski and Chandrasekar, "Scale filtering for improved nowcasting performance in a
    high-resolution X-band radar network", IEEE TGRS 49 (2011), 2296-2307.
    """
    wet = np.nan_to_num(rain) >= DRY
    decibel = np.full(rain.shape, DRY_DECIBEL)
    decibel[wet] = 10 * np.log10(rain[wet])
    decibel -= decibel.mean()
    modulus = np.abs(fft.rfft2(decibel, norm="forward")) ** 2
    ny, nx = rain.shape
    longest = max(ny, nx)
    # Cycles per longest side, along both axes in the same unit.
    rows = fft.fftfreq(ny) * longest
    columns = fft.rfftfreq(nx) * longest
    wavenumber = np.rint(np.hypot(rows[:, np.newaxis], columns)).astype(int)
    # rfft2 keeps half of the plane: all columns but the first and the last stand for two.
    weight = np.full(modulus.shape, 2.0)
    weight[:, 0] = 1
    if nx % 2 == 0:
        weight[:, -1] = 1
    last = longest // 2
    total, count = (
        np.bincount(wavenumber.ravel(), values.ravel(), minlength=last + 1)[1:last]
        for values in (modulus * weight, weight)
    )
    return longest * spacing / np.arange(1, last), total / count


def band_power(
    wavelength: NDArray[np.float64], power: NDArray[np.float64], shortest: float, longest: float
) -> float:
    """Mean power between two wavelengths in km, both included; NaN when there is none."""
    band = (wavelength >= shortest) & (wavelength <= longest)
    return float(power[band].mean()) if band.any() else float("nan")
