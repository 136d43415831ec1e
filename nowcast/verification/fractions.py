"""Sums of squared event counts in sliding windows, from which fractions skill scores are made."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import SettingsError
from daskdl.kernels.runtime.jit import jit


def fraction_sums(
    forecast: NDArray[np.bool_], observed: NDArray[np.bool_], window: int
) -> NDArray[np.float64]:
    """Sum, over all windows, the squared fractions of forecast and observed events.

    A window of ``window`` x ``window`` pixels lies wholly inside of the grid, so there are
    ``(y - window + 1) * (x - window + 1)`` of them for each lead (the inner border of
    ``scores.spatial.fss_2d`` with ``zero_padding=False``; no field is invented outside). With sums
    over as many leads and cases as one likes, FSS = 1 - difference / (forecast + observed).

    Parameters
    ----------
    forecast, observed : ndarray, (lead, y, x) bool
        Where there is an event. A pixel that is not scored has to be False in both.
    window : int
        Side of the windows in pixels.

    Returns
    -------
    ndarray, (lead, 3) float64
        Sums of squares of the forecast fractions, of the observed ones, and of their differences.

    Raises
    ------
    SettingsError
        If the window is empty or larger than the grid.

    References
    ----------
    Roberts and Lean, "Scale-selective verification of rainfall accumulations from high-resolution
    forecasts of convective events", Mon. Wea. Rev. 136 (2008), 78-97.
    """
    ny, nx = observed.shape[1:]
    if not 1 <= window <= min(ny, nx):
        raise SettingsError(
            f"fraction_sums: a window must have from 1 to {min(ny, nx)} pixels on a grid of "
            f"{ny} x {nx} pixels, found {window!r}; choose a smaller scale"
        )
    sums = np.zeros((len(observed), 3), np.int64)
    _window_sums(np.ascontiguousarray(forecast), np.ascontiguousarray(observed), window, sums)
    return sums / float(window) ** 4


@jit
def _window_sums(forecast: Any, observed: Any, window: int, sums: Any) -> None:
    """Add squared window counts to ``sums``, one pass with running sums along y and along x.

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
