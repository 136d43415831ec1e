"""Semi-Lagrangian advection: rain carried along a motion field that stays as it is."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from daskdl.errors import SettingsError, ShapeError
from nowcast.forecasters.motion import linear_weights

Float = NDArray[np.float32]


def advect(
    rain: Float, motion: Float, n_out: int, *, substeps: int = 1, coarsening: int = 4
) -> Float:
    """Carry rain along a steady motion, each frame by one interpolation of the rain as it was.

    The path of every point is followed backward in time by the midpoint rule; the rain that a pixel
    has after k steps is the rain at its departure point, between four pixels linearly. Since each
    frame is interpolated from ``rain`` itself, it blurs no more at the last lead than at the first.

    What comes from outside of the grid is not known, so it is NaN and not dry: filling in zeros
    would be a forecast that nothing ever moves in. A pixel is also NaN when one of the four pixels
    around its departure point is missing. Whoever scores such a forecast against another has to
    score both on the pixels that both have.

    Parameters
    ----------
    rain : ndarray, (y, x) float32
        Rain rate in mm h-1; NaN is missing.
    motion : ndarray, (2, y, x) float32
        Displacement in pixels per step along y and x; finite.
    n_out : int
        Number of steps, and of frames in the result.
    substeps : int
        Midpoint steps per time step; more for motion that turns within a step.
    coarsening : int
        Paths are followed from every so-many-th pixel and interpolated linearly between, which is
        exact enough for motion that is smooth over that distance; 1 follows each pixel.

    Returns
    -------
    ndarray, (n_out, y, x) float32
        Rain rate in mm h-1 after 1 ... ``n_out`` steps.

    Raises
    ------
    ShapeError
        If ``motion`` does not lie on the grid of ``rain``.
    SettingsError
        If ``n_out``, ``substeps`` or ``coarsening`` is less than 1.

    References
    ----------
    Germann and Zawadzki, "Scale-dependence of the predictability of precipitation from continental
    radar images, part I", Mon. Wea. Rev. 130 (2002), 2859-2873 (backward scheme).
    """
    rain = np.asarray(rain, np.float32)
    motion = np.asarray(motion, np.float32)
    if rain.ndim != 2 or motion.shape != (2, *rain.shape):
        raise ShapeError(
            "advect: expected rain (y, x) and motion (2, y, x) on one grid, "
            f"found {rain.shape} and {motion.shape}."
        )
    for name, value in (("n_out", n_out), ("substeps", substeps), ("coarsening", coarsening)):
        if value < 1:
            raise SettingsError(f"advect: {name} must be at least 1, found {value!r}.")

    ny, nx = rain.shape
    starts = np.stack(np.meshgrid(_nodes(ny, coarsening), _nodes(nx, coarsening), indexing="ij"))
    by_y = linear_weights(
        np.interp(np.arange(ny), starts[0, :, 0], range(starts.shape[1])), starts.shape[1]
    )
    by_x = linear_weights(
        np.interp(np.arange(nx), starts[1, 0], range(starts.shape[2])), starts.shape[2]
    )
    forecast = np.empty((n_out, ny, nx), np.float32)
    points = starts.copy()
    for frame in forecast:
        for _ in range(substeps):
            halfway = points - _sample(motion, points) / (2 * substeps)
            points -= _sample(motion, halfway) / substeps
        departure = np.matmul(np.matmul(by_y, points), by_x.T)
        ndimage.map_coordinates(
            rain, departure, output=frame, order=1, mode="constant", cval=np.nan, prefilter=False
        )
    return forecast


def _nodes(size: int, every: int) -> NDArray[np.float64]:
    """Pixels 0, every, 2 every ... and the last one."""
    return np.unique(np.append(np.arange(0, size, every), size - 1)).astype(np.float64)


def _sample(motion: Float, points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Motion at fractional pixels, linearly; outside of the grid that of its border."""
    return np.stack(
        [
            ndimage.map_coordinates(part, points, order=1, mode="nearest", prefilter=False)
            for part in motion
        ]
    )
