"""What a forecaster is, and the checks that all forecasters here share."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import SettingsError, ShapeError


class Forecaster(Protocol):
    """Anything that can be called with the last frames and answers with the next ones.

    ``rain`` is (n_in, y, x) float32, rain rate in mm h-1, equally spaced in time, oldest first, NaN
    where missing. The answer is (n_out, y, x) float32 in the same unit and on the same grid, one
    frame per time step after the last input, NaN where the method cannot know.
    """

    def __call__(self, rain: NDArray[np.float32], /) -> NDArray[np.float32]:
        """Forecast the frames that follow ``rain``."""
        ...


def check_n_out(name: str, n_out: int) -> None:
    """Raise SettingsError unless a forecaster has at least one frame to forecast."""
    if n_out < 1:
        raise SettingsError(f"{name}: n_out must be at least 1 frame, found {n_out!r}.")


def check_frames(name: str, rain: NDArray[np.float32], at_least: int) -> None:
    """Raise ShapeError unless ``rain`` is (n_in >= at_least, y, x)."""
    if rain.ndim != 3 or len(rain) < at_least:
        raise ShapeError(
            f"{name}: expected input frames of shape (n_in >= {at_least}, y, x), "
            f"found {rain.shape}."
        )
