"""Simulated rain that moves in a known way, for the tests of motion and skill."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage


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
