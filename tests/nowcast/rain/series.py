"""Frames in which every cell says where and when it is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

START = np.datetime64("2010-08-26T00:00", "ns")


def instants(minutes: Sequence[float]) -> np.ndarray:
    """Return times, given in minutes from the start."""
    return START + (np.asarray(minutes, float) * 60e9).astype("timedelta64[ns]")


def series(
    minutes: Sequence[float], ny: int = 4, nx: int = 5, values: ArrayLike | None = None
) -> xr.Dataset:
    """Return frames of which cell (i, j) of frame t is 100 t + 10 i + j, or has such values."""
    n = len(minutes)
    if values is None:
        t, i, j = np.ogrid[:n, :ny, :nx]
        values = 100 * t + 10 * i + j
    data = np.broadcast_to(np.asarray(values, np.float32), (n, ny, nx)).copy()
    return xr.Dataset(
        {"rain_rate": (("time", "y", "x"), data)},
        {"time": instants(minutes), "y": 1000.0 * np.arange(ny), "x": 1000.0 * np.arange(nx)},
    )
