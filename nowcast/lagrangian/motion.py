"""The motion of rain: dense optical flow of the last frames, large scales first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from daskdl.errors import ShapeError
from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.team import over_rows
from nowcast.lagrangian.blocks import block_means, enlarge, resample
from nowcast.lagrangian.frames import DRY_BELOW

Float = NDArray[np.float32]

#: Gradient of the images, scaled to 0 ... 1, below which a pixel shows nothing.
FLAT = 1e-3


def _summed(
    now: Float, earlier: Float, flow: Float, steps: float, every: int, scale: float = np.inf
) -> Float:
    """Return sums over blocks, (8, block_y, block_x): normal equations, differences and pixels.

    They are of gy gy, gy gx, gx gx, gy r, gx r and r r, weighted, of r r and of 1. ``g`` is the
    gradient times the steps, ``r`` the difference between the last image and the moved earlier
    one. A pixel's weight is less the larger ``r`` is against ``scale`` (Cauchy's weights).

    - ``now``, ``earlier`` (4, y, x): image, its gradients along y and x, and 1 where these are
      known, else 0.
    - ``flow`` (2, y, x): motion in pixels per step.
    - ``steps``: steps between the two.
    - ``every``: side of the blocks.
    """
    height, width = now.shape[1:]
    blocks = (-(-height // every), -(-width // every))
    sums = np.zeros((blocks[0], 8, blocks[1]), np.float32)
    over_rows(
        _add, (sums, np.arange(blocks[0])), max(1, 64 // every), now, earlier, flow,
        np.float32(steps), every, np.float32(1 / scale**2),
    )  # fmt: skip
    return np.ascontiguousarray(sums.transpose(1, 0, 2))


@jit
def _add(sums, block_rows, now, earlier, flow, steps, every, inverse):
    height, width = now.shape[1], now.shape[2]
    one, half, back = np.float32(1), np.float32(0.5), steps
    for k in range(len(block_rows)):
        first = block_rows[k] * every
        for i in range(first, min(first + every, height)):
            for j in range(width):
                if now[3, i, j] < one:
                    continue
                y, x = np.float32(i) - back * flow[0, i, j], np.float32(j) - back * flow[1, i, j]
                if not (0 <= y <= height - 1 and 0 <= x <= width - 1):
                    continue
                a, b = min(int(y), height - 2), min(int(x), width - 2)
                if (
                    earlier[3, a, b] < one or earlier[3, a, b + 1] < one
                    or earlier[3, a + 1, b] < one or earlier[3, a + 1, b + 1] < one
                ):  # fmt: skip
                    continue
                fy, fx = y - np.float32(a), x - np.float32(b)
                w00, w01 = (one - fy) * (one - fx), (one - fy) * fx
                w10, w11 = fy * (one - fx), fy * fx
                gy = half * (
                    now[1, i, j] + w00 * earlier[1, a, b] + w01 * earlier[1, a, b + 1]
                    + w10 * earlier[1, a + 1, b] + w11 * earlier[1, a + 1, b + 1]
                )  # fmt: skip
                gx = half * (
                    now[2, i, j] + w00 * earlier[2, a, b] + w01 * earlier[2, a, b + 1]
                    + w10 * earlier[2, a + 1, b] + w11 * earlier[2, a + 1, b + 1]
                )  # fmt: skip
                if abs(gy) + abs(gx) < FLAT:
                    continue
                moved = (
                    w00 * earlier[0, a, b] + w01 * earlier[0, a, b + 1]
                    + w10 * earlier[0, a + 1, b] + w11 * earlier[0, a + 1, b + 1]
                )  # fmt: skip
                r = now[0, i, j] - moved
                weight = one / (one + r * r * inverse)
                gy, gx = back * gy, back * gx
                block = j // every
                sums[k, 0, block] += weight * gy * gy
                sums[k, 1, block] += weight * gy * gx
                sums[k, 2, block] += weight * gx * gx
                sums[k, 3, block] += weight * gy * r
                sums[k, 4, block] += weight * gx * r
                sums[k, 5, block] += weight * r * r
                sums[k, 6, block] += r * r
                sums[k, 7, block] += one


#: Range of the images in dB above `DRY_BELOW`: stronger rain says no more.
DYNAMIC_RANGE = 35.0
#: Side in km of the finest blocks that the images are made of.
FINEST_KM = 2.0
#: Standard deviations in km of the image's blur and of the window over which motion is even.
LEVELS = ((16.0, np.inf), (10.0, 150.0), (6.0, 80.0), (3.5, 50.0), (2.5, 35.0), (2.0, 25.0))
#: Solutions of each level; the frames are moved by the result before the next one.
ITERATIONS, FIRST_ITERATIONS = 2, 8
#: Weight of the larger scale's motion, relative to the weight of a window with rain.
PRIOR = 0.02
#: How far in m s-1 motion may be from the larger scale's, at the largest scale from none.
SPREAD, FIRST_SPREAD = 13.0, 30.0
#: Windows are spaced by this part of their standard deviation.
NODES = 3.0


@dataclass
class _Image:
    """One frame at one scale: value, gradients along y and x, and where these are known."""

    channels: Float
    spacing: float


def motion_field(
    frames: Float,
    *,
    spacing_km: float = 1.0,
    step_minutes: float = 5.0,
    ages: Sequence[float] | None = None,
) -> Float:
    """Return the rain's displacement per time step at every pixel of the last frame.

    Lucas and Kanade's least squares, from one motion for the whole grid to windows of 25 km. At
    each level the earlier frames are moved by the motion so far and compared with the last one;
    the equations of all pairs are added, weighted against outliers (Cauchy's weights), summed over
    Gaussian windows and solved for a correction, which a weak prior holds to the motion of the
    larger scale. Dry places so take the motion of the rain around them, and far from all rain that
    of the larger scale; without any rain that moves, the motion is zero.

    Where rain fades or a radar drops out, frames differ by more than motion explains. The
    remaining differences count as one error of the whole window, and motion stays by so much
    nearer to the larger scale's, at the largest scale to none.

    All lengths are in km, so that a field does not depend on the grid that it is measured on.

    - ``frames`` (time, y, x): rain rate in mm h-1, two frames or more, oldest first; NaN is
      missing. Each is compared with the last one.
    - ``spacing_km``: distance of the grid's points.
    - ``ages``: of each frame, in steps before any one time, falling; by default the frames are one
      step apart.
    - returns (2, y, x): displacement in pixels per time step along y and along x; finite
      everywhere.
    - raises ShapeError if ``frames`` is not three-dimensional, has less than two frames, or is
      smaller than 8 x 8.

    References
    ----------
    Lucas and Kanade, "An iterative image registration technique", IJCAI 1981. Black and Anandan,
    "The robust estimation of multiple motions", Comput. Vis. Image Underst. 63 (1996), 75-104.
    """
    return motion_and_error(frames, spacing_km=spacing_km, step_minutes=step_minutes, ages=ages)[0]


def motion_and_error(
    frames: Float, *, spacing_km: float, step_minutes: float, ages: Sequence[float] | None
) -> tuple[Float, Float, float]:
    """Return `motion_field`, its standard error in m s-1 on square nodes, and their side in pixels.

    The error comes from the last level's least squares: the differences to the earlier frames that
    motion does not explain, over the gradients. It is large where the two earlier frames give
    different motions.
    """
    frames = np.asarray(frames)
    if frames.ndim != 3 or len(frames) < 2 or min(frames.shape[1:]) < 8:
        few = frames.ndim == 3 and len(frames) < 2
        advice = "give at least two frames of rain" if few else "take a grid of 8 x 8 cells or more"
        raise ShapeError(
            "motion_field: expected frames of shape (time >= 2, y >= 8, x >= 8), "
            f"found {frames.shape}; {advice}"
        )
    since = np.asarray(range(len(frames))[::-1] if ages is None else ages, np.float64)
    since = (since - since[-1])[-2::-1]
    side = max(1, round(FINEST_KM / spacing_km))
    spacing = side * spacing_km
    images = [_image(frame, side) for frame in frames[::-1]]

    motion = np.zeros((2, 1, 1), np.float32)  # km per step at the centres of windows
    node = spacing * max(images[0][0].shape)
    for blur, window in LEVELS:
        level = [_at_scale(*image, spacing, blur) for image in images]
        shape, step = level[0].channels.shape[1:], level[0].spacing
        every = max(shape)
        if np.isfinite(window):
            every = max(1, round(min(window / NODES, min(shape) * step) / step))
        counts = (-(-shape[0] // every), -(-shape[1] // every))
        prior = resample(motion, node, counts, every * step)
        motion, node = prior, every * step
        first = not np.isfinite(window)
        spread = (FIRST_SPREAD if first else SPREAD) * step_minutes * 0.06 / step
        for _ in range(FIRST_ITERATIONS if first else ITERATIONS):
            motion, error = _corrected(motion, prior, level, since, every, window, spread)
    moved = enlarge(motion / np.float32(spacing_km), frames.shape[1:], node / spacing_km)
    return moved, error / np.float32(step_minutes * 0.06), node / spacing_km


def _image(frame: NDArray[np.floating], side: int) -> tuple[Float, Float]:
    """Block means of dB rain above `DRY_BELOW`, 0 to 1, and the share of each that is known."""
    known = np.isfinite(frame)
    floor = np.float32(DRY_BELOW)
    decibel = 10 * np.log10(np.maximum(np.where(known, frame, floor), floor) / floor)
    decibel = np.minimum(decibel, DYNAMIC_RANGE).astype(np.float32) / np.float32(DYNAMIC_RANGE)
    share = block_means(known.astype(np.float32), side)
    decibel[~known] = 0
    return _mean(block_means(decibel, side), share), share


def _at_scale(image: Float, share: Float, spacing: float, blur: float) -> _Image:
    """Blur an image by ``blur`` km, on blocks of half of that."""
    side = max(1, round(blur / 2 / spacing))
    if side > 1:
        means = block_means(share, side)
        image = _mean(block_means(image * share, side), means)
        share = means
    step = side * spacing
    sigma = np.sqrt(max(blur**2 - step**2 / 12, 0)) / step
    weighted, weight = (
        ndimage.gaussian_filter(a, sigma, truncate=3, mode="constant")
        for a in (image * share, share)
    )
    smooth = _mean(weighted, weight)
    # Next to missing data the gradient is the gradient of the data's rim, which stands still.
    known = ndimage.minimum_filter((share > 0.95).astype(np.float32), 3, mode="nearest")
    slopes = np.gradient(smooth) if min(smooth.shape) > 1 else [np.zeros_like(smooth)] * 2
    return _Image(np.stack([smooth, *slopes, known]).astype(np.float32), step)


def _corrected(
    motion: Float,
    prior: Float,
    level: list[_Image],
    since: NDArray[np.float64],
    every: int,
    window: float,
    spread: float,
) -> tuple[Float, Float]:
    """Solve one level once: ``motion`` and ``prior`` are (2, node_y, node_x) in km per step.

    Returns the motion, and its standard error (node_y, node_x), in km per step.
    """
    step = np.float32(level[0].spacing)
    now = level[0].channels
    flow = enlarge(motion / step, now.shape[1:], every)
    sums = np.zeros((6, *motion.shape[1:]), np.float32)
    for steps, earlier in zip(since.tolist(), level[1:], strict=True):
        pair = now, earlier.channels, flow, steps, every
        squares, count = (float(part.sum(dtype=np.float64)) for part in _summed(*pair)[6:])
        if count:
            scale = np.sqrt(squares / count) + 1e-6
            # A pair that lies further apart moves more: its equations then weigh alike.
            sums += _summed(*pair, scale)[:6] / steps**2
    if np.isfinite(window):
        sigma = window / (every * float(step))
        sums = ndimage.gaussian_filter(sums, (0, sigma, sigma), truncate=3, mode="constant")
    trace = sums[0] + sums[2]
    if not trace.any():
        return prior, np.full(trace.shape, spread * step, np.float32)
    typical = (trace * trace).sum(dtype=np.float64) / trace.sum(dtype=np.float64)
    hold = np.float32(PRIOR * typical / 2)
    # Rain grows or fades together: the differences that motion does not explain count as one error
    # of the whole window, so that a motion far from the larger scale's is unlikely.
    y, x = _solved(sums, hold, -sums[3], -sums[4])
    residual = np.maximum(sums[5] + sums[3] * y + sums[4] * x, 0)
    # Where there is no rain, the remaining error is taken to be as everywhere.
    remaining = residual + 2 * hold * residual.sum() / trace.sum()
    hold = hold + residual / np.float32(spread**2)
    error = step * np.sqrt(remaining / (trace / 2 + hold))
    pull = hold * (prior - motion) / step
    correction = np.stack(_solved(sums, hold, pull[0] - sums[3], pull[1] - sums[4]))
    return (motion + step * correction).astype(np.float32), error.astype(np.float32)


def _solved(sums: Float, hold: Float | np.float32, p: Float, q: Float) -> tuple[Float, Float]:
    """Solve each window's two equations, whose diagonal gets ``hold`` added."""
    a, b, c = sums[0] + hold, sums[1], sums[2] + hold
    determinant = a * c - b * b
    return (c * p - b * q) / determinant, (a * q - b * p) / determinant


def _mean(total: Float, weight: Float) -> Float:
    """Divide sums by their weights; 0 where nothing is known."""
    return np.divide(total, np.maximum(weight, np.float32(1e-6)), dtype=np.float32)
