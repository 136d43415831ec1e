"""Convolutions and transposed convolutions, computed with channels last."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from daskdl import ops
from daskdl.errors import SettingsError, ShapeError
from daskdl.nn.operators.table import (
    Call,
    Value,
    array,
    channels_last,
    channels_second,
    dtype_of,
    operator,
    shape_of,
)


def sides(pads: Sequence[int]) -> tuple[int, ...]:
    """Return (before, after, before, after, ...) of ONNX's (before, before, after, after)."""
    half = len(pads) // 2
    return tuple(n for i in range(half) for n in (pads[i], pads[i + half]))


def padding(
    call: Call,
    lengths: Sequence[int],
    reach: Sequence[int],
    stride: Sequence[int],
) -> tuple[int, ...]:
    """Return the padding before and after each axis, with ``auto_pad`` resolved."""
    auto = call.get("auto_pad", "NOTSET")
    if auto == "NOTSET":
        return sides(call.get("pads", (0,) * 2 * len(reach)))
    if auto == "VALID":
        return (0,) * 2 * len(reach)
    widths = []
    for n, r, s in zip(lengths, reach, stride, strict=True):
        whole = max(0, (-(-n // s) - 1) * s + r - n)
        less, more = whole // 2, whole - whole // 2
        widths += [less, more] if auto == "SAME_UPPER" else [more, less]
    return tuple(widths)


def _reach(kernel: Sequence[int], dilation: Sequence[int]) -> list[int]:
    return [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]


_CONVOLUTIONS: dict[int, Any] = {1: ops.conv1d, 2: ops.conv2d, 3: ops.conv3d}


@operator("Conv")
def conv(call: Call, x: Value, weight: Value, bias: Value = None) -> Value:
    """Cross-correlate (N, C, ...) with filters (M, C / groups, ...)."""
    kernel = shape_of(weight)[2:]
    if len(kernel) not in _CONVOLUTIONS:
        raise ShapeError(
            f"Conv: expected 1 to 3 axes behind the channels, found filters {shape_of(weight)}"
        )
    x, settings = windows(call, x, kernel)
    if len(kernel) == 1:
        settings |= {name: settings[name][0] for name in ("stride", "dilation")}
    y = _CONVOLUTIONS[len(kernel)](x, channels_last(weight), bias, **settings)
    return channels_second(y)


def windows(call: Call, x: Value, kernel: Sequence[int]) -> tuple[Value, dict[str, Any]]:
    """Return x with channels last, and the settings of its convolution."""
    axes, lengths = len(kernel), shape_of(x)[2:]
    if len(lengths) != axes:
        raise ShapeError(
            f"Conv: expected {axes} axes behind the channels, as its filters have, found "
            f"{shape_of(x)}"
        )
    stride = tuple(call.get("strides", (1,) * axes))
    dilation = tuple(call.get("dilations", (1,) * axes))
    pad = padding(call, lengths, _reach(kernel, dilation), stride)
    x, pad = _cut(channels_last(x), pad)
    groups = call.get("group", 1)
    return x, {"stride": stride, "pad": pad, "dilation": dilation, "groups": groups}


def _cut(x: Value, pad: tuple[int, ...]) -> tuple[Value, tuple[int, ...]]:
    """Cut off the elements of a negative padding."""
    if min(pad) >= 0:
        return x, pad
    widths = [(0, 0), *((min(0, a), min(0, b)) for a, b in zip(pad[::2], pad[1::2], strict=True))]
    return ops.pad(x, widths=[*widths, (0, 0)]), tuple(max(0, n) for n in pad)


@operator("ConvTranspose")
def conv_transpose(call: Call, x: Value, weight: Value, bias: Value = None) -> Value:
    """Add each element times its kernel to the result; weight (C, M / groups, ...)."""
    lengths, kernel = shape_of(x)[2:], shape_of(weight)[2:]
    axes = len(kernel)
    if not 1 <= axes <= 3 or len(lengths) != axes:
        raise ShapeError(
            f"ConvTranspose: expected 1 to 3 axes behind the channels, found {shape_of(x)} and "
            f"filters {shape_of(weight)}"
        )
    stride = tuple(call.get("strides", (1,) * axes))
    dilation = tuple(call.get("dilations", (1,) * axes))
    more = tuple(call.get("output_padding", (0,) * axes))
    whole = [
        (n - 1) * s + r + m
        for n, s, r, m in zip(lengths, stride, _reach(kernel, dilation), more, strict=True)
    ]
    pad = _transposed_padding(call, lengths, stride, whole)
    # First without padding and output_padding; the result is cut or extended afterwards.
    settings = {"groups": call.get("group", 1)}
    x, weight = channels_last(x), channels_last(weight)
    if axes == 1:
        x = ops.reshape(x, shape=(shape_of(x)[0], 1, *shape_of(x)[1:]))
        weight = ops.reshape(weight, shape=(shape_of(weight)[0], 1, *shape_of(weight)[1:]))
        y = ops.conv_transpose2d(
            x, weight, bias, stride=(1, *stride), dilation=(1, *dilation), **settings
        )
        y = ops.reshape(y, shape=(y.shape[0], *y.shape[2:]))
    else:
        function: Any = ops.conv_transpose2d if axes == 2 else ops.conv_transpose3d
        y = function(x, weight, bias, stride=stride, dilation=dilation, **settings)
    widths = [(-a, m - b) for a, b, m in zip(pad[::2], pad[1::2], more, strict=True)]
    y = _adjusted(y, widths, bias)
    return channels_second(y)


def _transposed_padding(
    call: Call, lengths: Sequence[int], stride: Sequence[int], whole: Sequence[int]
) -> tuple[int, ...]:
    wanted = call.get("output_shape")
    auto = call.get("auto_pad", "NOTSET")
    if wanted is None and auto in ("SAME_UPPER", "SAME_LOWER"):
        wanted = [n * s for n, s in zip(lengths, stride, strict=True)]
    if wanted is None:
        return (
            sides(call.get("pads", (0,) * 2 * len(lengths)))
            if auto == "NOTSET"
            else (0, 0) * len(lengths)
        )
    widths = []
    for n, w in zip(whole, wanted[-len(lengths) :], strict=True):
        total = n - w
        less = total // 2
        widths += [less, total - less] if auto == "SAME_UPPER" else [total - less, less]
    return tuple(widths)


def _adjusted(y: Value, widths: list[tuple[int, int]], bias: Value) -> Value:
    """Cut the result, or pad it with the bias, the value of elements that no kernel reaches."""
    if not any(n for pair in widths for n in pair):
        return y
    around = [(0, 0), *widths, (0, 0)]
    if bias is None or max(n for pair in widths for n in pair) <= 0:
        return ops.pad(y, widths=around)
    return ops.pad(ops.subtract(y, bias), widths=around) + bias


@operator("CausalConvWithState")
def causal_conv(
    call: Call, x: Value, weight: Value, bias: Value = None, past: Value = None
) -> Value:
    """Convolve (N, C, T) depthwise with earlier steps; also return those for the next call."""
    n, channels, steps = shape_of(x)
    k = shape_of(weight)[-1]
    before = np.zeros((n, channels, k - 1), dtype_of(x)) if past is None else past
    whole = ops.concatenate(before, x, axis=2)
    y = channels_second(
        ops.conv1d(channels_last(whole), channels_last(weight), bias, groups=channels)
    )
    activation = call.get("activation", "none")
    if activation in ("silu", "swish"):
        y = ops.silu(y)
    elif activation != "none":
        raise SettingsError(f"CausalConvWithState: expected silu or none, found {activation!r}")
    return y, whole[:, :, steps:]


@operator("Col2Im")
def col2im(call: Call, x: Value, image: Value, block: Value) -> Value:
    """Sum columns of windows into images, (N, C * block, count) -> (N, C, ...)."""
    size, kernel = tuple(array(image)), tuple(int(n) for n in array(block))
    axes = len(size)
    stride = tuple(call.get("strides", (1,) * axes))
    dilation = tuple(call.get("dilations", (1,) * axes))
    pad = sides(call.get("pads", (0,) * 2 * axes))
    n, rows, _ = shape_of(x)
    counts = [
        (size[i] + sum(pad[2 * i : 2 * i + 2]) - (kernel[i] - 1) * dilation[i] - 1) // stride[i] + 1
        for i in range(axes)
    ]
    channels = rows // int(np.prod(kernel))
    y = ops.reshape(x, shape=(n, channels, *kernel, *counts))
    # For one axis after the other, its windows and cells become neighbours and are summed.
    order = [0, 1, *(a for i in range(axes) for a in (2 + axes + i, 2 + i))]
    y = ops.transpose(y, axes=tuple(order))
    for i in range(axes):
        y = ops.fold(
            y, axis=2 + i, length=int(size[i]), stride=stride[i], pad=pad[2 * i : 2 * i + 2],
            dilation=dilation[i],
        )  # fmt: skip
    return y
