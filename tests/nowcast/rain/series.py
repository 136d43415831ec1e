"""Frames whose cells encode their place and time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from nowcast.rain import writer
from nowcast.rain.grid import Grid

GRID = Grid.around(51.0, 5.0, size=(6, 8), spacing=1000.0)
START = np.datetime64("2010-08-26T00:00", "ns")


def instants(minutes: Sequence[float]) -> np.ndarray:
    """Return times, given in minutes from the start."""
    return START + (np.asarray(minutes, float) * 60e9).astype("timedelta64[ns]")


def series(
    minutes: Sequence[float], ny: int = 4, nx: int = 5, values: ArrayLike | None = None
) -> xr.Dataset:
    """Return frames with ``values``; by default cell (i, j) of frame t is 100 t + 10 i + j."""
    n = len(minutes)
    if values is None:
        t, i, j = np.ogrid[:n, :ny, :nx]
        values = 100 * t + 10 * i + j
    data = np.broadcast_to(np.asarray(values, np.float32), (n, ny, nx)).copy()
    return xr.Dataset(
        {"rain_rate": (("time", "y", "x"), data)},
        {"time": instants(minutes), "y": 1000.0 * np.arange(ny), "x": 1000.0 * np.arange(nx)},
    )


def frame(minute: int, value: float | None = None, whole: bool = False) -> writer.Frame:
    """Return a frame of a scan at 13:``minute``:07; its cells are the minute, or ``value``.

    One corner is missing unless the frame is whole.
    """
    rain = np.full((6, 8), minute if value is None else value, np.float32)
    rain[0, 0] = rain[0, 0] if whole else np.nan
    time = np.datetime64("2020-02-07T13:00", "ns") + np.timedelta64(minute, "m")
    return writer.Frame(time, rain, time + np.timedelta64(7, "s"))


def frames(*minutes: int) -> list[writer.Frame]:
    """Return whole frames in the order of time; their cells are the minute."""
    return [frame(minute, whole=True) for minute in sorted(minutes)]


def new_store(path: Path, *made: writer.Frame) -> Path:
    """Write a store of frames."""
    described = {"title": "t", "source": "s"}
    writer.create(path, GRID, made[0], attributes={}, global_attributes=described)
    writer.append(path, made[1:])
    return path
