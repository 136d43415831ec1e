"""Detail and place of rain: power spectra by scale, and sums behind fractions skill scores."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from daskdl.kernels.runtime.jit import jit


def fraction_sums(
    forecast: NDArray[np.bool_], observed: NDArray[np.bool_], window: int
) -> NDArray[np.float64]:
    """Sum, over all windows, the squared fractions of forecast and observed events.

    A window of ``window`` x ``window`` pixels lies wholly inside of the grid, so there are ``(y -
    window + 1) * (x - window + 1)`` windows for each lead (the inner border of
    ``scores.spatial.fss_2d`` with ``zero_padding=False``). With sums over any leads and cases, FSS
    = 1 - difference / (forecast + observed).

    - ``forecast``, ``observed`` (lead, y, x): where there is an event. A pixel that is not scored
      has to be False in both.
    - ``window``: side of the windows in pixels, at most the grid's.
    - returns (lead, 3): sums of squares of the forecast fractions, of the observed fractions and
      of their differences.

    References
    ----------
    Roberts and Lean, "Scale-selective verification of rainfall accumulations from high-resolution
    forecasts of convective events", Mon. Wea. Rev. 136 (2008), 78-97.
    """
    sums = np.zeros((len(observed), 3), np.int64)
    _window_sums(np.ascontiguousarray(forecast), np.ascontiguousarray(observed), window, sums)
    return sums / float(window) ** 4


@jit
def _window_sums(forecast: Any, observed: Any, window: int, sums: Any) -> None:
    """Add squared window counts to ``sums`` in one pass, with running sums along y and x.

    Counts are integers, so the sums are exact: a window of 1000 x 1000 pixels on a grid of a
    million windows still fits in 64 bits.
    """
    leads, ny, nx = observed.shape
    for lead in range(leads):
        columns_f = np.zeros(nx, np.int32)
        columns_o = np.zeros(nx, np.int32)
        for y in range(ny):
            for x in range(nx):
                columns_f[x] += forecast[lead, y, x]
                columns_o[x] += observed[lead, y, x]
            if y >= window:
                for x in range(nx):
                    columns_f[x] -= forecast[lead, y - window, x]
                    columns_o[x] -= observed[lead, y - window, x]
            if y < window - 1:
                continue
            f = np.int64(0)
            o = np.int64(0)
            for x in range(nx):
                f += columns_f[x]
                o += columns_o[x]
                if x >= window:
                    f -= columns_f[x - window]
                    o -= columns_o[x - window]
                if x >= window - 1:
                    sums[lead, 0] += f * f
                    sums[lead, 1] += o * o
                    sums[lead, 2] += (f - o) * (f - o)


#: Rain rate in mm h-1 below which a pixel is dry, and the value in dB of dry pixels: 5 dB below the
#: weakest rain, so that the edges of rain count but do not dominate.
DRY, DRY_DECIBEL = 0.1, -15.0


def radial_power(
    rain: NDArray[np.float32], spacing: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the power of the rain in dB by wavelength, averaged over directions.

    - ``rain`` (y, x): rain rate in mm h-1; missing pixels count as dry, so mask fields alike before
      you compare them.
    - ``spacing``: spacing of the pixels in km.
    - returns ``wavelength`` (max(y, x) // 2 - 1,): in km, decreasing from the longer side of the
      grid to two pixels.
    - returns ``power``: mean squared modulus of the Fourier coefficients, scaled so that all
      squared moduli sum to the field's mean square.

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
    # rfft2 keeps half of the plane: all columns except the first and the last count twice.
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
    """Return the mean power between two wavelengths in km, both included; NaN without any."""
    band = (wavelength >= shortest) & (wavelength <= longest)
    return float(power[band].mean()) if band.any() else float("nan")
