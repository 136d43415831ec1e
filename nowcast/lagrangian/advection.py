"""Semi-Lagrangian advection: rain carried along a steady motion field."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.team import over_rows

Float = NDArray[np.float32]

#: Pixels between the points whose paths are followed; motion is smooth over that distance.
COARSENING = 4


def advect(rain: Float, motion: Float, leads: int, *, before: float = 0.0) -> Float:
    """Carry rain along a steady motion; each frame is one interpolation of the first rain.

    The path of every point is followed backward in time by the midpoint rule; the rain that a pixel
    has after k steps is the rain at its departure point, between four pixels linearly. Since each
    frame is interpolated from ``rain`` itself, it blurs no more at the last lead than at the first.

    What comes from outside of the grid is not known, so it is NaN and not dry: filling in zeros
    would be a forecast that nothing ever moves in. A pixel is also NaN when one of the four pixels
    around its departure point is missing. To compare two such
    forecasts, score both on the pixels that both have.

    - ``rain`` (y, x): rain rate in mm h-1; NaN is missing.
    - ``motion`` (2, y, x): displacement in pixels per step along y and x; finite.
    - ``leads``: number of steps, and of frames in the result.
    - ``before``: steps from the rain's time to the forecast's start.
    - returns (leads, y, x): rain rate in mm h-1 after 1 ... ``leads`` steps.

    References
    ----------
    Germann and Zawadzki, "Scale-dependence of the predictability of precipitation from continental
    radar images, part I", Mon. Wea. Rev. 130 (2002), 2859-2873 (backward scheme).
    """
    rain, motion = np.asarray(rain, np.float32), np.asarray(motion, np.float32)
    forecast = np.empty((leads, *rain.shape), np.float32)
    for frame, points in zip(forecast, departures(motion, leads, before=before), strict=True):
        carry(rain, points, out=frame)
    return forecast


def departures(motion: Float, leads: int, *, before: float = 0.0) -> Iterator[Float]:
    """Yield the departure points of the nodes of a coarse grid, for 1 ... ``leads`` steps.

    - ``motion`` (2, y, x): displacement in pixels per step.
    - ``before``: steps by which the first one is longer.
    - yields (2, node_y, node_x): fractional pixel coordinates; the last row and column of nodes may
      lie beyond the grid.
    """
    axes = [np.arange(-(-(n - 1) // COARSENING) + 1) * COARSENING for n in motion.shape[1:]]
    points = np.stack(np.meshgrid(*axes, indexing="ij")).astype(np.float32)
    motion = np.ascontiguousarray(motion, np.float32)
    for lead in range(leads):
        points = points.copy()
        if not lead and before:
            over_rows(_follow, (points[0], points[1]), 64, motion * np.float32(before))
        over_rows(_follow, (points[0], points[1]), 64, motion)
        yield points


def origins(motion: Float, steps: float) -> Float:
    """Return the places (2, node_y, node_x) of the nodes' rain, ``steps`` steps before."""
    count = max(1, round(steps))
    part = motion * np.float32(steps / count)
    *_, points = departures(part, count)
    return points


def carry(field: Float, points: Float, *, out: Float | None = None, nearest: bool = False) -> Float:
    """Interpolate a field at departure points, linearly between four pixels; NaN is kept apart.

    - ``field`` (y, x): NaN where missing.
    - ``points`` (2, node_y, node_x): from `departures`.
    - ``nearest``: take the nearest pixel, up to half a pixel off; this keeps rates and fine detail.
    - returns (y, x): NaN where one of these pixels is missing or outside of the grid.
    """
    out = np.empty_like(field) if out is None else out
    rows = np.arange(len(field))
    field = np.ascontiguousarray(field)
    over_rows(_carry, (out, rows), 64, field, points, COARSENING, nearest)
    return out


def carry_all(fields: Float, points: Float) -> Float:
    """Interpolate several fields (field, y, x) that are known everywhere, as `carry` does.

    - ``fields`` (field, y, x): finite. Where the path comes from outside of the grid, the result is
      NaN.
    - ``points`` (2, node_y, node_x): from `departures`.
    """
    stacked = np.ascontiguousarray(fields)
    out = np.empty((stacked.shape[1], len(stacked), stacked.shape[2]), np.float32)
    over_rows(_carry_all, (out, np.arange(len(out))), 16, stacked, points, COARSENING)
    made: Float = out.transpose(1, 0, 2)
    return made


@jit
def _sample(field, y, x):
    """Value of a field at a point, linearly; outside of the grid the border's value."""
    height, width = field.shape
    y, x = min(max(y, 0.0), height - 1.0), min(max(x, 0.0), width - 1.0)
    i, j = min(int(y), max(height - 2, 0)), min(int(x), max(width - 2, 0))
    below, right = min(i + 1, height - 1), min(j + 1, width - 1)
    fy, fx = np.float32(y - i), np.float32(x - j)
    one = np.float32(1)
    upper = field[i, j] * (one - fx) + field[i, right] * fx
    lower = field[below, j] * (one - fx) + field[below, right] * fx
    return upper * (one - fy) + lower * fy


@jit
def _follow(points_y, points_x, motion):
    """Move points one step back in time along the motion, by the midpoint rule."""
    half = np.float32(0.5)
    for i in range(points_y.shape[0]):
        for j in range(points_y.shape[1]):
            y, x = points_y[i, j], points_x[i, j]
            middle_y = y - half * _sample(motion[0], y, x)
            middle_x = x - half * _sample(motion[1], y, x)
            points_y[i, j] = y - _sample(motion[0], middle_y, middle_x)
            points_x[i, j] = x - _sample(motion[1], middle_y, middle_x)


@jit
def _origin(points, row, column, every):
    """Departure point (y, x) of a pixel, linearly between four nodes' departure points."""
    one = np.float32(1)
    last_y, last_x = points.shape[1] - 1, points.shape[2] - 1
    i, j = min(row // every, max(last_y - 1, 0)), min(column // every, max(last_x - 1, 0))
    below, right = min(i + 1, last_y), min(j + 1, last_x)
    fy = np.float32(row - i * every) / np.float32(every)
    fx = np.float32(column - j * every) / np.float32(every)
    a, b, c, d = (one - fy) * (one - fx), (one - fy) * fx, fy * (one - fx), fy * fx
    y = a * points[0, i, j] + b * points[0, i, right]
    x = a * points[1, i, j] + b * points[1, i, right]
    y += c * points[0, below, j] + d * points[0, below, right]
    x += c * points[1, below, j] + d * points[1, below, right]
    return y, x


@jit
def _carry(out, rows, field, points, every, nearest):
    """Fill rows of a frame with the field at their pixels' departure points."""
    height, width = field.shape
    close, half, one = np.float32(1e-3), np.float32(0.5), np.float32(1)
    for k in range(len(rows)):
        for column in range(width):
            y, x = _origin(points, rows[k], column, every)
            if not (-close <= y <= height - 1 + close and -close <= x <= width - 1 + close):
                out[k, column] = np.nan
                continue
            i, j = int(y + close), int(x + close)
            i, j = min(i, height - 1), min(j, width - 1)
            # Whole pixels, but for rounding, are taken as they are: next to them may be nothing.
            fy, fx = max(y - i, np.float32(0)), max(x - j, np.float32(0))
            if nearest:
                i, j = i + int(fy > half), j + int(fx > half)
                fy = fx = np.float32(0)
            below = i + 1 if fy > close else i
            right = j + 1 if fx > close else j
            if below == i:
                fy = np.float32(0)
            if right == j:
                fx = np.float32(0)
            upper = field[i, j] * (one - fx) + field[i, right] * fx
            lower = field[below, j] * (one - fx) + field[below, right] * fx
            out[k, column] = upper * (one - fy) + lower * fy


@jit
def _carry_all(out, rows, fields, points, every):
    """Fill rows of several frames; each pixel's departure point is computed once for all."""
    height, width = fields.shape[1], fields.shape[2]
    close, one = np.float32(1e-3), np.float32(1)
    at = np.empty(width, np.int64)
    part = np.empty((2, width), np.float32)
    for k in range(len(rows)):
        for column in range(width):
            y, x = _origin(points, rows[k], column, every)
            if not (-close <= y <= height - 1 + close and -close <= x <= width - 1 + close):
                at[column] = -1
                continue
            y, x = min(max(y, np.float32(0)), np.float32(height - 1)), max(x, np.float32(0))
            i, j = min(int(y), height - 2), min(int(x), width - 2)
            at[column] = i * width + j
            part[0, column], part[1, column] = y - np.float32(i), min(x - np.float32(j), one)
        for f in range(len(fields)):
            flat = fields[f].ravel()
            for column in range(width):
                p = at[column]
                if p < 0:
                    out[k, f, column] = np.nan
                    continue
                fy, fx = part[0, column], part[1, column]
                upper = flat[p] * (one - fx) + flat[p + 1] * fx
                lower = flat[p + width] * (one - fx) + flat[p + width + 1] * fx
                out[k, f, column] = upper * (one - fy) + lower * fy
