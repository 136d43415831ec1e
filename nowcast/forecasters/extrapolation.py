"""Extrapolation along optical flow: rain that moves on as it moved, and neither grows nor fades."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nowcast.forecasters.advection import advect
from nowcast.forecasters.forecaster import check_frames, check_n_out
from nowcast.forecasters.motion import motion_field


@dataclass(frozen=True)
class Extrapolation:
    """Lagrangian persistence: the last frame carried along the motion of the last frames.

    Parameters
    ----------
    n_out : int
        Number of frames to forecast.
    smoothing : float
        Standard deviation in pixels of the Gaussian that joins the motion, see
        `nowcast.forecasters.motion.motion_field`.
    pairs : int
        How many of the last pairs of frames give the motion.
    """

    n_out: int
    smoothing: float = 40.0
    pairs: int = 2

    def __post_init__(self) -> None:
        check_n_out("Extrapolation", self.n_out)

    def __call__(self, rain: NDArray[np.float32], /) -> NDArray[np.float32]:
        """Carry ``rain[-1]`` on: (n_in >= 2, y, x) -> (n_out, y, x), mm h-1.

        Pixels whose rain would come from outside of the grid, or from missing pixels, are NaN.
        """
        check_frames("Extrapolation", rain, at_least=2)
        motion = motion_field(rain, smoothing=self.smoothing, pairs=self.pairs)
        return advect(rain[-1], motion, self.n_out)
