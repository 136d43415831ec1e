"""Pooling over windows and over whole images."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from daskdl import ops
from daskdl.nn.operators.convolution import padding, sides
from daskdl.nn.operators.table import (
    Call,
    Value,
    array,
    channels_last,
    channels_second,
    dtype_of,
    is_float,
    operator,
    shape_of,
)
from daskdl.ops.pool.pool_nd import WindowsND
from daskdl.ops.pool.regions import region_weights
from daskdl.tensor import Array


def windows(call: Call, x: Value) -> WindowsND:
    """Return a node's windows over the axes after the channels."""
    lengths, kernel = shape_of(x)[2:], tuple(call.get("kernel_shape"))
    stride = tuple(call.get("strides", (1,) * len(kernel)))
    dilation = tuple(call.get("dilations", (1,) * len(kernel)))
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    pad = padding(call, lengths, reach, stride)
    return WindowsND(kernel, stride, pad, dilation, bool(call.get("ceil_mode", 0)))


def _of_images(window: WindowsND, x: Value) -> dict[str, Any] | None:
    """Return settings of the faster pooling of images without dilation; None where it is unfit."""
    fits = (
        len(window.kernel_size) == 2
        and set(window.dilation) == {1}
        and is_float(x)
        and all(p < k for p, k in zip(window.pad, np.repeat(window.kernel_size, 2), strict=True))
    )
    settings = window._asdict()
    del settings["dilation"]
    return settings if fits else None


@operator("MaxPool")
def max_pool(call: Call, x: Value) -> Value:
    """Return the largest number of each window, and its index."""
    window = windows(call, x)
    settings = _of_images(window, x)
    if call.results == 1 and settings is not None:
        return channels_second(ops.max_pool2d(channels_last(x), **settings))
    y, places = ops.max_pool_nd(channels_last(x), **window._asdict())
    y, at = channels_second(y), np.moveaxis(places.data, -1, 1)
    lengths = shape_of(x)[2:]
    if call.get("storage_order", 0):
        grid = np.unravel_index(at, lengths)
        at = np.ravel_multi_index(grid[::-1], lengths[::-1])
    planes = np.arange(math.prod(shape_of(x)[:2])).reshape(*shape_of(x)[:2], *(1,) * len(lengths))
    return y, (at + planes * math.prod(lengths)).astype(np.int64)


def _counts(window: WindowsND, lengths: tuple[int, ...], with_padding: bool, dtype: Any) -> Array:
    """Return the number of cells of each window's mean, (1, ..., 1)."""
    sizes = lengths
    if with_padding:
        sizes = tuple(
            n + a + b for n, a, b in zip(lengths, window.pad[::2], window.pad[1::2], strict=True)
        )
        # The windows stay in place: padding is part of the axis now.
        inside = window._replace(pad=(0,) * len(window.pad))
        total = np.zeros((1, *window.sizes(lengths), 1), dtype)
        ones = np.ones((1, *sizes, 1), dtype)
        y = np.asarray(ops.sum_pool_nd(ones, **inside._asdict()).data)
        total[tuple(slice(n) for n in y.shape)] = y
        return total[tuple(slice(n) for n in total.shape)]
    return np.asarray(ops.sum_pool_nd(np.ones((1, *sizes, 1), dtype), **window._asdict()).data)


@operator("AveragePool")
def average_pool(call: Call, x: Value) -> Value:
    """Return the mean of each window, with or without the cells of the padding."""
    window, with_padding = windows(call, x), bool(call.get("count_include_pad", 0))
    settings = _of_images(window, x)
    if settings is not None:
        y = ops.avg_pool2d(channels_last(x), **settings, count_include_pad=with_padding)
        return channels_second(y)
    sums = ops.sum_pool_nd(channels_last(x), **window._asdict())
    counts = _counts(window, shape_of(x)[2:], with_padding, dtype_of(x))
    return channels_second(ops.divide(sums, np.maximum(counts, 1)))


@operator("LpPool")
def lp_pool(call: Call, x: Value) -> Value:
    """Return the p-norm of each window."""
    p = float(call.get("p", 2))
    sums = ops.sum_pool_nd(
        channels_last(ops.power(ops.abs(x), exponent=p)), **windows(call, x)._asdict()
    )
    return channels_second(ops.power(sums, exponent=1 / p))


@operator("GlobalAveragePool")
def global_average_pool(call: Call, x: Value) -> Value:
    """Take the mean over all axes after the channels."""
    return ops.mean(x, axis=tuple(range(2, len(shape_of(x)))), keepdims=True)


@operator("GlobalMaxPool")
def global_max_pool(call: Call, x: Value) -> Value:
    """Take the maximum over all axes after the channels."""
    shape = shape_of(x)
    y = ops.amax(ops.reshape(x, shape=(*shape[:2], math.prod(shape[2:]))), axis=-1)
    return ops.reshape(y, shape=(*shape[:2], *(1,) * (len(shape) - 2)))


@operator("GlobalLpPool")
def global_lp_pool(call: Call, x: Value) -> Value:
    """Take the p-norm over all axes after the channels."""
    p, axes = float(call.get("p", 2)), tuple(range(2, len(shape_of(x))))
    return ops.power(
        ops.sum(ops.power(ops.abs(x), exponent=p), axis=axes, keepdims=True), exponent=1 / p
    )


@operator("MaxUnpool")
def max_unpool(call: Call, x: Value, places: Value, shape: Value = None) -> Value:
    """Put maxima back to their places, with zeros elsewhere."""
    values = array(x)
    kernel = call.get("kernel_shape")
    stride = call.get("strides", (1,) * len(kernel))
    pad = sides(call.get("pads", (0,) * 2 * len(kernel)))
    lengths = [
        (n - 1) * s - pad[2 * i] - pad[2 * i + 1] + k
        for i, (n, s, k) in enumerate(zip(values.shape[2:], stride, kernel, strict=True))
    ]
    inner = (*values.shape[:2], *lengths)
    whole = inner if shape is None else tuple(int(n) for n in array(shape))
    # Indices count through the pooled input, the smaller one of the two shapes.
    index = np.unravel_index(array(places), inner)
    return ops.scatter(np.zeros(whole, values.dtype), x, index=tuple(index))


@operator("RoiAlign")
def roi_align(call: Call, x: Value, regions: Value, batches: Value) -> Value:
    """Pool regions of images by interpolation between pixels (K. He et al., arXiv 1703.06870)."""
    images, boxes, of = array(x), array(regions), array(batches)
    _, channels, height, width = images.shape
    rows, columns = call.get("output_height", 1), call.get("output_width", 1)
    ratio, scale = call.get("sampling_ratio", 0), call.get("spatial_scale", 1.0)
    default = "half_pixel" if call.opset >= 16 else "output_half_pixel"
    how = call.get("coordinate_transformation_mode", default)
    half = how == "half_pixel"
    highest = call.get("mode", "avg") == "max"
    pieces = []
    for box, sample in zip(boxes, of, strict=True):
        left, top, right, bottom = (float(v) * scale - 0.5 * half for v in box)
        image = ops.take(x, index=(int(sample),))
        a = region_weights(top, bottom, rows, height, ratio, half)
        b = region_weights(left, right, columns, width, ratio, half)
        if highest:  # maximum of the four products whose sum would be a point's interpolation
            pieces.append(_largest(image, a, b))
            continue
        rows_of = ops.along(image, matrix=a.mean(1), axis=1)
        pieces.append(ops.along(rows_of, matrix=b.mean(1), axis=2))
    if not pieces:
        return np.zeros((0, channels, rows, columns), images.dtype)
    return ops.stack(*pieces)


def _largest(image: Value, a: Array, b: Array) -> Value:
    (rows, down), (columns, across), values = a.shape[:2], b.shape[:2], array(image)
    a, b = (m.reshape(-1, m.shape[-1]) for m in (a, b))
    best: Any = None
    order_a, order_b = (np.argsort(-m, axis=1, kind="stable")[:, :2] for m in (a, b))
    for i in range(order_a.shape[1]):
        for j in range(order_b.shape[1]):
            u, v = order_a[:, i], order_b[:, j]
            weight = np.take_along_axis(a, u[:, None], 1) * np.take_along_axis(b, v[:, None], 1).T
            part = ops.take(image, index=(slice(None), u[:, None], v)) * weight.astype(values.dtype)
            best = part if best is None else ops.maximum(best, part)
    best = ops.reshape(best, shape=(values.shape[0], rows, down, columns, across))
    best = ops.transpose(best, axes=(0, 1, 3, 2, 4))
    return ops.amax(ops.reshape(best, shape=(values.shape[0], rows, columns, -1)), axis=-1)
