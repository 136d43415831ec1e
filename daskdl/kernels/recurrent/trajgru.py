"""Links along trajectories: images sampled where flows point, and projected, in blocks of pixels.

TrajGRU has them in place of a convolution of its state: X. Shi et al., Deep Learning for
Precipitation Nowcasting: A Benchmark and A New Model, arXiv 1706.03458. The sampled channels of all
links are many times as large as the image; a block of them stays in the cache for its product.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.products.ordered import add_product, room_for
from daskdl.kernels.runtime.jit import fastjit, jit
from daskdl.kernels.runtime.team import n_fixed, over_parts, over_range

Array = NDArray[np.floating]

#: Bytes of the sampled channels of a block of pixels.
BLOCK = 1 << 19


def project(image: Array, flows: Array, weight: Array, sums: Array) -> None:
    """Add the projection of samples of an image (N, H, W, C) to the last K columns of ``sums``.

    Flows (N, H, W, 2 * L) are each pixel's and link's offset in columns and rows to the place of
    its sample. Samples are interpolated bilinearly; outside, the image is zero. Weights (L * C, K),
    sums (N * H * W, at least K).
    """
    pixels = _pixels(weight)
    over_range(_project, len(sums), pixels, image, flows, weight, sums, pixels)


def project_gradient(
    image: Array, flows: Array, weight: Array, d_sums: Array, d_image: Array
) -> tuple[Array, Array]:
    """Return the gradients of :func:`project` to the flows and to the weights.

    Weights (K, L * C). The gradient to the result is in the last K columns of ``d_sums``; the
    gradient to the image is added to ``d_image``, in place.
    """
    d_flows = np.empty_like(flows)

    pixels = _pixels(weight)
    # Flows of two parts may point to one pixel: each part but the first has its own sums.
    count = n_fixed(len(d_sums), pixels)
    others = np.zeros((count - 1, *d_image.shape), d_image.dtype)
    d_weights = np.zeros((count, *weight.shape), weight.dtype)
    arguments = image, flows, weight, d_sums, d_image, others, d_flows, d_weights, pixels
    over_parts(_gradient, len(d_sums), pixels, *arguments)
    for other in others:
        d_image += other
    return d_flows, d_weights.sum(0)


def _pixels(weight: Array) -> int:
    """Return the pixels of a block; L * C is about the longer side of the weights."""
    return max(16, BLOCK // (max(weight.shape) * weight.itemsize))


@fastjit
def _place(position, size):
    """Return the pixel before a position and the fraction after it; -2 and 0 outside.

    NaN gives pixel 0 and a fraction of NaN, so that it shows.
    """
    if position != position:
        return np.intp(0), position
    if position <= -1 or position >= size:
        return np.intp(-2), position - position
    below = np.floor(position)
    return np.intp(below), position - below


@fastjit
def _sample(image, flows, p, samples):
    """Write the samples (L * C,) of pixel ``p``."""
    n_rows, n_columns, channels = image.shape[1:]
    kind = image.dtype.type
    n, pixel = divmod(p, n_rows * n_columns)
    i, j = divmod(pixel, n_columns)
    flow = flows[n, i, j]
    for link in range(flow.size // 2):
        target = samples[link * channels : (link + 1) * channels]
        top, down = _place(kind(i) + flow[2 * link + 1], n_rows)
        left, across = _place(kind(j) + flow[2 * link], n_columns)
        if 0 <= top < n_rows - 1 and 0 <= left < n_columns - 1:
            upper, lower = image[n, top], image[n, top + 1]
            a, b, c, d = upper[left], upper[left + 1], lower[left], lower[left + 1]
            for k in range(channels):
                above = a[k] + across * (b[k] - a[k])
                below = c[k] + across * (d[k] - c[k])
                target[k] = above + down * (below - above)
            continue
        target[:] = 0
        for y in range(max(0, top), min(top + 2, n_rows)):
            for x in range(max(0, left), min(left + 2, n_columns)):
                weight = (down if y > top else kind(1) - down) * (
                    across if x > left else kind(1) - across
                )
                source = image[n, y, x]
                for k in range(channels):
                    target[k] += weight * source[k]


@fastjit
def _sample_gradient(image, flows, p, d, d_image, d_flows):
    """Propagate the gradient ``d`` to the samples of pixel ``p`` to the image and the flows."""
    n_rows, n_columns, channels = image.shape[1:]
    kind = image.dtype.type
    n, pixel = divmod(p, n_rows * n_columns)
    i, j = divmod(pixel, n_columns)
    flow, d_flow = flows[n, i, j], d_flows[n, i, j]
    for link in range(flow.size // 2):
        up = d[link * channels : (link + 1) * channels]
        top, down = _place(kind(i) + flow[2 * link + 1], n_rows)
        left, across = _place(kind(j) + flow[2 * link], n_columns)
        to_down, to_across = kind(0), kind(0)
        for y in range(max(0, top), min(top + 2, n_rows)):
            for x in range(max(0, left), min(left + 2, n_columns)):
                by_row = down if y > top else kind(1) - down
                by_column = across if x > left else kind(1) - across
                source, target, weight = image[n, y, x], d_image[n, y, x], by_row * by_column
                product = kind(0)
                for k in range(channels):
                    product += up[k] * source[k]
                    target[k] += weight * up[k]
                to_down += by_column * product if y > top else -by_column * product
                to_across += by_row * product if x > left else -by_row * product
        d_flow[2 * link], d_flow[2 * link + 1] = to_across, to_down


@jit
def _project(image, flows, weight, sums, pixels, which, start, stop):
    samples = np.empty((pixels, weight.shape[0]), image.dtype)
    room = room_for(image, weight.shape[1], weight.shape[0])
    first = sums.shape[1] - weight.shape[1]
    for block in range(start, stop, pixels):
        end = min(stop, block + pixels)
        for p in range(block, end):
            _sample(image, flows, p, samples[p - block])
        add_product(samples[: end - block], weight, sums[block:end, first:], room)


@jit
def _gradient(
    image, flows, weight, d_sums, first, others, d_flows, d_weights, pixels, which, start, stop
):
    d_image, d_weight = first if which == 0 else others[which - 1], d_weights[which]
    samples = np.empty((pixels, weight.shape[1]), image.dtype)
    room = room_for(image, weight.shape[1], max(pixels, weight.shape[0]))
    column = d_sums.shape[1] - weight.shape[0]
    for block in range(start, stop, pixels):
        end = min(stop, block + pixels)
        d, here = d_sums[block:end, column:], samples[: end - block]
        for p in range(block, end):
            _sample(image, flows, p, samples[p - block])
        add_product(d.T, here, d_weight, room)
        here[:] = 0  # the samples' memory now holds their gradients
        add_product(d, weight, here, room)
        for p in range(block, end):
            _sample_gradient(image, flows, p, samples[p - block], d_image, d_flows)
