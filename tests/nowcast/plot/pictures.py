"""Fields and forecasts to draw, and functions to look at the pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

START = np.datetime64("2021-07-14T21:50", "ns")
STEP = np.timedelta64(10 * 60 * 10**9, "ns")


def field(peak: float = 30.0, shift: int = 0, size: int = 40) -> NDArray[np.float32]:
    """One storm on dry ground; a corner is missing."""
    y, x = np.mgrid[:size, :size]
    rain = peak * np.exp(-((x - size / 3 - shift) ** 2 + (y - size / 2) ** 2) / (size / 6) ** 2)
    rain[:6, :6] = np.nan
    return rain.astype(np.float32)


def forecast(leads: int = 6, speed: int = 2, peak: float = 30.0, **attrs: Any) -> xr.Dataset:
    """A forecast of a storm that moves, as predict makes it."""
    lead = np.arange(1, leads + 1) * STEP
    fields = np.stack([field(peak, speed * k) for k in range(1, leads + 1)])
    return xr.Dataset(
        {"rain_rate": (("lead_time", "y", "x"), fields)},
        coords={
            "lead_time": lead,
            "time": ("lead_time", START + lead),
            "forecast_reference_time": START,
            **axes(fields.shape[-1]),
        },
        attrs=attrs,
    )


def frames(first: int, last: int, speed: int = 1) -> xr.DataArray:
    """Observed frames, numbered from the start of the forecast."""
    numbers = np.arange(first, last + 1)
    fields = np.stack([field(20.0, speed * int(k)) for k in numbers])
    return xr.DataArray(
        fields,
        dims=("time", "y", "x"),
        coords={"time": START + numbers * STEP, **axes(fields.shape[-1])},
    )


def axes(size: int) -> dict[str, NDArray[np.float64]]:
    """Coordinates of cells of two kilometres."""
    middles = (np.arange(size) - (size - 1) / 2) * 2000.0
    return {"y": middles, "x": middles}


def pixels(path: Path) -> NDArray[np.uint8]:
    """Red, green and blue of a PNG."""
    from PIL import Image

    with Image.open(path) as image:
        assert image.format == "PNG"
        return np.asarray(image.convert("RGB"))


def share(image: NDArray[np.uint8], colour: str) -> float:
    """Share of an image's pixels that have a colour."""
    from matplotlib.colors import to_rgb

    wanted = np.round(255 * np.array(to_rgb(colour)))
    return float((np.abs(image - wanted) <= 1).all(axis=-1).mean())
