"""Simulated rain that moves in a known way, a small store and model of it, and forecasters."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy import ndimage

from daskdl.models import ConvLSTMForecaster
from nowcast.forecasters import Forecast
from nowcast.forecasters.dataset import forecast_dataset
from nowcast.model.model import NowcastModel, RainScale
from nowcast.model.split import split_by_rain
from nowcast.rain.cf import rain_dataset
from nowcast.rain.grid import Grid
from nowcast.rain.identity import name_of
from nowcast.rain.store import write_zarr

START, STEP = np.datetime64("2020-06-01T00:00", "ns"), np.timedelta64(10, "m")
FRAMES, SIZE, N_IN, N_OUT = 24, 32, 2, 3


def storms(shape: tuple[int, int], seed: int, cover: float = 0.3) -> NDArray[np.float32]:
    """Patchy rain rates in mm h-1 on a periodic grid, ``cover`` of it wet."""
    noise = np.random.default_rng(seed).standard_normal(shape)
    smooth = ndimage.gaussian_filter(noise, 5, mode="wrap") * 20
    smooth += ndimage.gaussian_filter(noise[::-1], 2, mode="wrap") * 2
    above = smooth - np.quantile(smooth, 1 - cover)
    return np.where(above > 0, 0.3 * np.expm1(2 * above / above.max() * 2), 0).astype(np.float32)


def shifted(field: NDArray[np.float32], dy: float, dx: float) -> NDArray[np.float32]:
    """The periodic field moved by (dy, dx) pixels towards higher indices."""
    return ndimage.shift(field, (dy, dx), order=3, mode="grid-wrap").clip(0).astype(np.float32)


def translation(
    n: int, dy: float, dx: float, size: int = 160, margin: int = 40, seed: int = 0
) -> NDArray[np.float32]:
    """``n`` frames of storms that move by (dy, dx) a step, cut out of a larger periodic field."""
    field = storms((size + 2 * margin, size + 2 * margin), seed)
    inside = slice(margin, margin + size)
    return np.stack([shifted(field, k * dy, k * dx)[inside, inside] for k in range(n)])


def rotation(n: int, degrees: float, size: int = 160, seed: int = 0) -> NDArray[np.float32]:
    """``n`` frames of storms that turn about the grid's centre, by ``degrees`` a step from x to y.

    So a point at (y, x) from the centre moves by about ``radians(degrees) * (x, -y)`` a step.
    """
    large = storms((2 * size, 2 * size), seed)
    centre = size - 0.5
    y, x = np.mgrid[size // 2 : size // 2 + size, size // 2 : size // 2 + size] - centre
    frames = []
    for k in range(n):
        c, s = np.cos(np.radians(k * degrees)), np.sin(np.radians(k * degrees))
        points = np.stack([c * y - s * x, s * y + c * x]) + centre
        frames.append(ndimage.map_coordinates(large, points, order=1))
    return np.stack(frames)


def rain_of(
    frames: Any, minutes: Any, grid: Grid, start: np.datetime64 = START, **attrs: Any
) -> xr.Dataset:
    """A rain Dataset of frames (n, y, x) at times in minutes after the start."""
    time = start + np.round(60 * np.asarray(minutes)).astype(int) * np.timedelta64(1, "s")
    described = {"title": "test", "source": "weather radar, test"} | attrs
    rain = np.asarray(frames, np.float32)
    return rain_dataset(grid, time, rain, attributes={}, global_attributes=described)


def moving_rain(
    minutes: Any = None, spacing: float = 1000.0, latitude: float = 50.0, **attrs: Any
) -> xr.Dataset:
    """Storms that move by two cells a frame, every ten minutes from midnight on; a corner missing.

    ``minutes`` gives the times of other frames, in minutes after midnight.
    """
    after = 10 * np.arange(FRAMES) if minutes is None else np.asarray(minutes)
    rain = translation(len(after), 0, 2, size=SIZE)
    rain[:, :2, :2] = np.nan
    grid = Grid.around(latitude, 5.0, size=(SIZE, SIZE), spacing=spacing)
    return rain_of(rain, after, grid, **{"title": "moving patches"} | attrs)


def small_model(n_in: int = N_IN) -> NowcastModel:
    """An untrained model for the store: twelve frames train it, seven from 2:50 on test it."""
    network = ConvLSTMForecaster(n_in, N_OUT, channels=(4,), block=4)
    network.head.bias.data += 0.5  # else an untrained network may forecast none
    times = START + np.arange(FRAMES) * STEP
    name = name_of(moving_rain())
    split = split_by_rain(name, times, np.ones(FRAMES), (0.5, 0.2), n_in + N_OUT)
    return NowcastModel(network, STEP, (1000.0, 1000.0), RainScale(), split, {})


def a_forecast(index: int = 11, **attrs: Any) -> xr.Dataset:
    """A forecast from frame ``index`` of the moving rain; its rain is noise, not a model's."""
    noise = np.random.default_rng(0).gamma(0.5, 2.0, (N_OUT, SIZE, SIZE)).astype(np.float32)
    noise[:, :2, :2] = np.nan
    return forecast_dataset(moving_rain(**attrs), index, noise, "noise")


def write_all(folder: Path) -> tuple[Path, Path]:
    """Write the model and the store; return their paths."""
    small_model().save(folder / "model")
    write_zarr(moving_rain(), folder / "rain.zarr")
    return folder / "model", folder / "rain.zarr"


class Answers:
    """Forecaster that returns the answer of a function of (frames, leads): rain or a Forecast."""

    def __init__(self, answer: Callable[..., Any], n_in: int = 1) -> None:
        self.answer, self.n_in, self.least = answer, n_in, n_in

    def forecast(self, rain: np.ndarray, leads: int, **settings: Any) -> Forecast:
        made = self.answer(rain, leads)
        return made if isinstance(made, Forecast) else Forecast(made)


def oracle(observed: np.ndarray, factor: float = 1.0, n_in: int = 3) -> Answers:
    """Forecaster that returns the observed frames times ``factor``; after the end, the last."""

    def look_up(frames: np.ndarray, leads: int) -> np.ndarray:
        last = next(i for i, f in enumerate(observed) if np.array_equal(f, frames[-1], True))
        wanted = np.minimum(np.arange(last + 1, last + 1 + leads), len(observed) - 1)
        return observed[wanted] * np.float32(factor)

    return Answers(look_up, n_in)
