"""The equations of optical flow between two images, summed over blocks of pixels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.team import over_rows

Float = NDArray[np.float32]

#: Gradient of the images, scaled to 0 ... 1, below which a pixel shows nothing.
FLAT = 1e-3


def residuals(
    now: Float, earlier: Float, flow: Float, steps: float, every: int
) -> tuple[float, int]:
    """Return the sum of squared differences to the moved earlier image, and of how many pixels.

    Parameters
    ----------
    now, earlier : ndarray, (4, y, x) float32
        Image, its gradients along y and x, and 1 where these are known, else 0.
    flow : ndarray, (2, y, x) float32
        Motion in pixels per step.
    steps : float
        Steps between the two.
    every : int
        Side of the blocks.
    """
    sums = _summed(now, earlier, flow, steps, every, np.inf)
    return float(sums[6].sum(dtype=np.float64)), int(sums[7].sum(dtype=np.float64))


def normal_equations(
    now: Float, earlier: Float, flow: Float, steps: float, every: int, scale: float
) -> Float:
    """Return the sums (6, block_y, block_x) of gy gy, gy gx, gx gx, gy r, gx r and r r.

    ``g`` is the gradient times the steps, ``r`` the difference between the last image and the moved
    earlier one. A pixel counts less the larger ``r`` is against ``scale`` (Cauchy's weights).
    """
    return _summed(now, earlier, flow, steps, every, scale)[:6]


def _summed(
    now: Float, earlier: Float, flow: Float, steps: float, every: int, scale: float
) -> Float:
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
