"""Extrapolation by pysteps, the peer to compare with, where pysteps is installed."""

from __future__ import annotations

import contextlib
import importlib.util
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import MissingExtraError
from nowcast.forecasters.forecaster import check_frames, check_n_out

#: Threshold in mm h-1 and value in dB of dry pixels of the images that the motion is taken from.
RAIN_THRESHOLD = 0.1
DRY_DECIBEL = -15.0


def pysteps_installed() -> bool:
    """Whether pysteps and the OpenCV that its Lucas-Kanade needs can be imported."""
    return all(importlib.util.find_spec(name) is not None for name in ("pysteps", "cv2"))


@dataclass(frozen=True)
class PystepsExtrapolation:
    """pysteps' Lucas-Kanade motion of the last three frames and its backward extrapolation.

    Parameters
    ----------
    n_out : int
        Number of frames to forecast.

    Raises
    ------
    MissingExtraError
        If pysteps or OpenCV is not installed.

    References
    ----------
    Pulkkinen et al., "Pysteps: an open-source Python library for probabilistic precipitation
    nowcasting (v1.0)", Geosci. Model Dev. 12 (2019), 4185-4219.
    """

    n_out: int

    def __post_init__(self) -> None:
        check_n_out("PystepsExtrapolation", self.n_out)
        if not pysteps_installed():
            raise MissingExtraError(
                "PystepsExtrapolation needs pysteps and OpenCV, which are not installed: "
                "pip install 'daskdl[pysteps]'."
            )

    def __call__(self, rain: NDArray[np.float32], /) -> NDArray[np.float32]:
        """Carry ``rain[-1]`` on: (n_in >= 2, y, x) -> (n_out, y, x), mm h-1, NaN from outside."""
        check_frames("PystepsExtrapolation", rain, at_least=2)
        motion_of, extrapolate, to_decibel = _load()
        recent = rain[-3:].astype(np.float64)
        decibel, _ = to_decibel(recent, threshold=RAIN_THRESHOLD, zerovalue=DRY_DECIBEL)
        decibel[~np.isfinite(decibel)] = DRY_DECIBEL
        forecast = extrapolate(recent[-1], motion_of(decibel, verbose=False), self.n_out)
        return np.asarray(forecast, np.float32)


def _load() -> tuple[Any, Any, Any]:
    """Motion, extrapolation and dB transform of pysteps, whose import prints to stdout."""
    with contextlib.redirect_stdout(sys.stderr):
        from pysteps import motion, nowcasts
        from pysteps.utils import transformation
    return (
        motion.get_method("LK"),
        nowcasts.get_method("extrapolation"),
        transformation.dB_transform,
    )
