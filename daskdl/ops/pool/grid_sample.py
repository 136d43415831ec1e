"""Images sampled at arbitrary places (M. Jaderberg et al., Spatial Transformer Networks)."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from daskdl.errors import SettingsError, ShapeError
from daskdl.ops.pool.resample import kernel
from daskdl.tensor import Array, op

__all__ = ["grid_sample"]


@op
def grid_sample(
    x: Array,
    grid: Array,
    *,
    mode: str = "linear",
    padding_mode: str = "zeros",
    align_corners: bool = False,
):
    """Interpolate images or volumes at the places of a grid; arXiv 1506.02025.

    Parameters
    ----------
    x : array (N, ..., C), two or three axes between
    grid : array (N, ..., 2 or 3)
        Places from -1 to 1, the last axis of x first. Its gradient is 0 with ``mode="nearest"``.
    mode : "linear", "nearest" or "cubic"
    padding_mode : "zeros", "border" or "reflection"
        Values beyond the edges.
    align_corners : bool
        Whether -1 and 1 are the centres of corner pixels instead of their outer edges.

    Returns
    -------
    array (N, ..., C)
        Samples, with the grid's axes between.

    Examples
    --------
    >>> grid = np.zeros((1, 1, 1, 2))  # the middle
    >>> ops.grid_sample(np.arange(9.0).reshape(1, 3, 3, 1), grid).data.ravel()
    array([4.])
    """
    axes = x.ndim - 2
    if grid.ndim != x.ndim or grid.shape[-1] != axes or len(grid) != len(x):
        raise ShapeError(
            f"grid_sample: expected x (N, ..., C) and grid (N, ..., {axes}), found {x.shape} and "
            f"{grid.shape}"
        )
    if mode not in ("linear", "nearest", "cubic") or padding_mode not in _PADDINGS:
        raise SettingsError(
            f"grid_sample: expected mode linear, nearest or cubic and padding_mode zeros, border "
            f"or reflection, found {mode!r} and {padding_mode!r}"
        )
    lengths = x.shape[1:-1]
    at, slopes = [], []
    for i, n in enumerate(lengths):
        place = grid[..., axes - 1 - i].astype(np.float64)
        slope = (n - 1) / 2 if align_corners else n / 2
        place = (place + 1) * slope - (0 if align_corners else 0.5)
        if mode != "cubic":
            place, sign = _PADDINGS[padding_mode](place, n, align_corners)
            slope = slope * sign
        at.append(place)
        slopes.append(slope)
    samples = np.arange(len(x)).reshape(-1, *(1,) * axes)
    taps = []
    for cell in itertools.product(*(_weights(mode, place) for place in at)):
        ids, inside = [], np.ones(at[0].shape, bool)
        for (index, _, _), n in zip(cell, lengths, strict=True):
            if mode == "cubic":
                moved, _ = _PADDINGS[padding_mode](index.astype(np.float64), n, align_corners)
                index = np.round(moved).astype(np.int64)
            inside &= (index >= 0) & (index < n)
            ids.append(np.clip(index, 0, n - 1))
        share = math.prod((weight for _, weight, _ in cell), start=inside)
        slants = [
            math.prod((part[2 if j == i else 1] for j, part in enumerate(cell)), start=inside)
            * slopes[i]
            for i in range(axes)
        ]
        taps.append(((samples, *ids), share.astype(x.dtype)[..., None], slants))
    y = np.zeros((*grid.shape[:-1], x.shape[-1]), x.dtype)
    for at_cell, share, _ in taps:
        y += x[at_cell] * share

    def to_input(dy: Array) -> Array:
        dx = np.zeros_like(x)
        for index, share, _ in taps:
            np.add.at(dx, index, dy * share)
        return dx

    def to_grid(dy: Array) -> Array:
        dg = np.zeros(grid.shape)
        for index, _, slants in taps:
            product = (x[index] * dy).sum(-1)
            for i, slant in enumerate(slants):
                dg[..., axes - 1 - i] += product * slant
        return dg.astype(grid.dtype)

    return y, lambda dy: (lambda: to_input(dy), lambda: to_grid(dy))


def _weights(mode: str, at: Array) -> list[tuple[Array, Array, Array]]:
    """Return (index, weight, slope of the weight) of each element around a place."""
    if mode == "nearest":
        return [(np.round(at).astype(np.int64), np.ones(at.shape), np.zeros(at.shape))]
    below = np.floor(at)
    share = at - below
    first = below.astype(np.int64)
    if mode == "linear":
        ones = np.ones(at.shape)
        return [(first, 1 - share, -ones), (first + 1, share, ones)]
    cells, a = [], -0.75
    for k in range(-1, 3):
        d = np.abs(share - k)
        slope = np.where(d <= 1, (3 * (a + 2) * d - 2 * (a + 3)) * d, ((3 * d - 10) * d + 8) * a)
        cells.append((first + k, kernel("cubic", d, a), slope * np.sign(share - k)))
    return cells


def _zeros(at: Array, n: int, align_corners: bool) -> tuple[Array, Any]:
    return np.clip(at, -1e6, 1e6), 1.0


def _border(at: Array, n: int, align_corners: bool) -> tuple[Array, Any]:
    return np.clip(at, 0, n - 1), ((at >= 0) & (at <= n - 1)).astype(np.float64)


def _reflection(at: Array, n: int, align_corners: bool) -> tuple[Array, Any]:
    low, span = (0.0, n - 1.0) if align_corners else (-0.5, float(n))
    if span <= 0:
        return np.zeros_like(at), 0.0
    turned = at - low
    sign = np.where(turned < 0, -1.0, 1.0)
    turned = np.abs(turned)
    flips, rest = np.floor(turned / span), np.mod(turned, span)
    odd = flips % 2 == 1
    place = np.where(odd, span - rest, rest) + low
    inside = np.clip(place, 0, n - 1)
    return inside, np.where(odd, -sign, sign) * (inside == place)


_PADDINGS: dict[str, Any] = {"zeros": _zeros, "border": _border, "reflection": _reflection}
