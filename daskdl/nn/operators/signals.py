"""Spectra, windows for them, and boxes that overlap."""

from __future__ import annotations

import numpy as np

from daskdl import ops
from daskdl.errors import SettingsError
from daskdl.kernels.detection import nms
from daskdl.nn.operators.shapes import DTYPES
from daskdl.nn.operators.table import Call, Value, array, operator

#: Factors of the cosines whose sums are windows.
_WINDOWS = {
    "HannWindow": (0.5, -0.5),
    "HammingWindow": (25 / 46, -21 / 46),
    "BlackmanWindow": (0.42, -0.5, 0.08),
}


@operator(*_WINDOWS)
def window(call: Call, size: Value) -> Value:
    """Return a window of cosines: Hann, Hamming or Blackman."""
    count = int(array(size).reshape(-1)[0])
    span = max(1, count if call.get("periodic", 1) else count - 1)
    angle = 2 * np.pi * np.arange(count) / span
    y = sum(factor * np.cos(k * angle) for k, factor in enumerate(_WINDOWS[call.name]))
    return np.asarray(y, DTYPES[call.get("output_datatype", 1)])


@operator("DFT")
def dft(call: Call, x: Value, length: Value = None, axis: Value = None) -> Value:
    """Discrete Fourier transform along an axis; the last axis has real and imaginary parts."""
    default = call.get("axis", 1) if call.opset < 20 else -2
    return ops.dft(
        x,
        axis=default if axis is None else int(array(axis).reshape(-1)[0]),
        length=None if length is None else int(array(length).reshape(-1)[0]),
        inverse=bool(call.get("inverse", 0)),
        one_sided=bool(call.get("onesided", 0)),
    )


@operator("STFT")
def stft(
    call: Call, signal: Value, step: Value, window: Value = None, length: Value = None
) -> Value:
    """Spectra of windows of a signal, (N, T, 1 or 2) -> (N, windows, frequencies, 2)."""
    hop = int(array(step).reshape(-1)[0])
    size = array(window).shape[0] if window is not None else int(array(length).reshape(-1)[0])
    parts = ops.unfold(signal, axis=1, size=size, stride=hop)
    if window is not None:
        parts = ops.multiply(parts, ops.reshape(window, shape=(size, 1)))
    inner = Call("DFT", {"onesided": call.get("onesided", 1)}, 20)
    return dft(inner, parts, None, np.array(2))


@operator("MelWeightMatrix")
def mel_weight_matrix(
    call: Call, bins: Value, length: Value, rate: Value, low: Value, high: Value
) -> Value:
    """Triangles over the frequencies of a spectrum, evenly spaced on the mel scale."""
    count, points, sampled, lower, upper = (
        array(v).reshape(-1)[0] for v in (bins, length, rate, low, high)
    )
    edges = np.arange(int(count) + 2, dtype=np.float64)
    low_mel, high_mel = (2595 * np.log10(1 + f / 700) for f in (lower, upper))
    mel = edges * (high_mel - low_mel) / len(edges) + low_mel
    at = ((int(points) + 1) * 700 * (10 ** (mel / 2595) - 1) // sampled).astype(int)
    first, top, last = at[:-2], at[1:-1], at[2:]
    k = np.arange(int(points) // 2 + 1)[:, None]
    rise = np.where(first == top, 1, (k - first) / np.maximum(top - first, 1))
    y = np.where((k >= first) & (k <= top), rise, 0)
    y = np.where((k >= top) & (k < last), (last - k) / np.maximum(last - top, 1), y)
    return y.astype(DTYPES[call.get("output_datatype", 1)])


@operator("NonMaxSuppression")
def non_max_suppression(
    call: Call,
    boxes: Value,
    scores: Value,
    most: Value = None,
    overlap: Value = None,
    least: Value = None,
) -> Value:
    """Choose boxes by score, without those that overlap a better one; no gradient."""
    limit, worst, lowest = (
        default if v is None else array(v).reshape(-1)[0].item()
        for v, default in ((most, 0), (overlap, 0.0), (least, -np.inf))
    )
    places = array(boxes).astype(np.float64)
    if call.get("center_point_box", 0):
        x, y, w, h = np.moveaxis(places, -1, 0)
        corners = np.stack([y - h / 2, x - w / 2, y + h / 2, x + w / 2], -1)
    else:
        a, b = places[..., :2], places[..., 2:]
        corners = np.concatenate([np.minimum(a, b), np.maximum(a, b)], -1)
    chosen = []
    for n, of_class in enumerate(array(scores)):
        for c, values in enumerate(of_class):
            above = np.arange(len(values)) if least is None else np.flatnonzero(values > lowest)
            kept = above[nms(corners[n, above], values[above], worst, int(limit))]
            chosen += [(n, c, i) for i in kept]
    return np.array(chosen, np.int64).reshape(-1, 3)


@operator("DeformConv")
def deform_conv(
    call: Call, x: Value, weight: Value, offset: Value, bias: Value = None, mask: Value = None
) -> Value:
    """Convolve images with kernels whose taps are moved by offsets (arXiv 1811.11168)."""
    images, filters = array(x), array(weight)
    if images.ndim != 4:
        raise SettingsError(f"DeformConv: expected images (N, C, H, W), found {images.shape}")
    n, channels, height, width = images.shape
    out, share, kh, kw = filters.shape
    top, left, bottom, right = call.get("pads", (0,) * 4)
    (down, across), (dh, dw) = call.get("strides", (1, 1)), call.get("dilations", (1, 1))
    groups, parts = call.get("group", 1), call.get("offset_group", 1)
    rows = (height + top + bottom - (kh - 1) * dh - 1) // down + 1
    columns = (width + left + right - (kw - 1) * dw - 1) // across + 1
    moves = ops.reshape(offset, shape=(n, parts, kh * kw, 2, rows, columns))
    taps = []
    for k in range(kh * kw):
        y0 = (np.arange(rows) * down - top + k // kw * dh)[:, None]
        x0 = np.arange(columns) * across - left + k % kw * dw
        for p in range(parts):
            move = ops.take(moves, index=(slice(None), p, k))
            places = []
            for i, (start, size) in enumerate(((y0, height), (x0, width))):
                at = ops.cast(ops.take(move, index=(slice(None), i)), dtype=np.float64) + start
                places.append((at * 2.0 + 1.0) * (1 / size) - 1.0)
            grid = ops.stack(*places[::-1], axis=-1)
            step = channels // parts
            some = ops.take(x, index=(slice(None), slice(p * step, (p + 1) * step)))
            some = ops.transpose(some, axes=(0, 2, 3, 1))
            value = ops.grid_sample(some, grid, mode="linear")
            if mask is not None:
                shape = (n, parts, kh * kw, rows, columns)
                factor = ops.take(ops.reshape(mask, shape=shape), index=(slice(None), p, k))
                value = value * ops.reshape(factor, shape=(n, rows, columns, 1))
            taps.append(value)  # (N, rows, columns, channels / parts)
    windows = ops.stack(*taps, axis=0)
    windows = ops.reshape(windows, shape=(kh * kw, parts, n, rows, columns, channels // parts))
    windows = ops.transpose(windows, axes=(2, 3, 4, 1, 5, 0))  # channels, then taps
    windows = ops.reshape(windows, shape=(n * rows * columns, groups, share * kh * kw))
    kernel = ops.reshape(weight, shape=(groups, out // groups, share * kh * kw))
    y = ops.matmul(
        ops.transpose(windows, axes=(1, 0, 2)), ops.transpose(kernel, axes=(0, 2, 1))
    )  # (groups, pixels, out / groups)
    y = ops.reshape(ops.transpose(y, axes=(1, 0, 2)), shape=(n, rows, columns, out))
    y = y if bias is None else ops.add(y, bias)
    return ops.transpose(y, axes=(0, 3, 1, 2))
