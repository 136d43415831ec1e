"""A small rain store and a small model for it, for the tests that use both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from daskdl.models import ConvLSTMForecaster
from nowcast.forecasters.dataset import forecast_dataset
from nowcast.model.model import NowcastModel, RainScale
from nowcast.model.split import split_by_rain
from nowcast.rain.cf import rain_dataset
from nowcast.rain.grid import Grid
from nowcast.rain.identity import name_of
from nowcast.rain.store import write_zarr
from tests.nowcast.fields import translation

START, STEP = np.datetime64("2020-06-01T00:00", "ns"), np.timedelta64(10, "m")
FRAMES, SIZE, N_IN, N_OUT = 24, 32, 2, 3


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
