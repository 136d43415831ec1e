"""Persistence: the last frame stays, which every forecast has to beat."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nowcast.forecasters.forecaster import check_frames, check_n_out


@dataclass(frozen=True)
class Persistence:
    """Forecast that repeats the last frame.

    Parameters
    ----------
    n_out : int
        Number of frames to forecast.

    Examples
    --------
    >>> import numpy as np
    >>> last = np.array([[0.0, 1.5]], np.float32)
    >>> Persistence(n_out=2)(last[np.newaxis])
    array([[[0. , 1.5]],
    <BLANKLINE>
           [[0. , 1.5]]], dtype=float32)
    """

    n_out: int

    def __post_init__(self) -> None:
        check_n_out("Persistence", self.n_out)

    def __call__(self, rain: NDArray[np.float32], /) -> NDArray[np.float32]:
        """Repeat ``rain[-1]``: (n_in, y, x) -> (n_out, y, x), mm h-1."""
        check_frames("Persistence", rain, at_least=1)
        return np.repeat(rain[-1:].astype(np.float32), self.n_out, axis=0)
