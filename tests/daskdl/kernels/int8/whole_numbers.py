"""Convolutions of bytes as numpy computes them, with whole numbers and float32 steps."""

from __future__ import annotations

import numpy as np

from daskdl.kernels.int8.product import End


def convolved(x, zero, weight, scale, bias, geometry, end=End()):  # noqa: B008
    """Return a convolution of x (N, H, W, in) with weights (out, kh, kw, in / groups), finished."""
    if geometry.groups > 1:
        whole = (
            x,
            weight,
            scale,
            bias,
            np.zeros((1, 1, 1, geometry.groups)) if end.residual is None else end.residual,
        )
        parts = zip(*(np.split(a, geometry.groups, -1 if a.ndim == 4 and a is not weight else 0)
                      for a in whole), strict=True)  # fmt: skip
        alone, results = geometry._replace(groups=1), []
        for a, w, factor, shift, residual in parts:
            last = end if end.residual is None else end._replace(residual=residual)
            results.append(convolved(a, zero, w, factor, shift, alone, last))
        return np.concatenate(results, -1)
    n, height, width, channels = x.shape
    (down, across), (top, bottom, left, right) = geometry.stride, geometry.pad
    rows, columns = geometry.size(height, width)
    wide = np.full((n, height + top + bottom, width + left + right, channels), zero, np.int64)
    wide[:, top : top + height, left : left + width] = x
    sums = np.zeros((n, rows, columns, len(weight)), np.int64)
    for i in range(weight.shape[1]):
        for j in range(weight.shape[2]):
            seen = wide[:, i * geometry.dilation[0] :, j * geometry.dilation[1] :]
            seen = seen[:, : (rows - 1) * down + 1 : down, : (columns - 1) * across + 1 : across]
            sums += (seen - zero) @ weight[:, i, j].astype(np.int64).T
    y = sums.astype(np.float32) * scale + bias
    if end.of_residual is not None:
        zero, factor = np.float32(end.of_residual.zero), np.float32(end.of_residual.scale)
        y = y + (end.residual.astype(np.float32) - zero) * factor
    elif end.residual is not None:
        y = y + end.residual
    y = y.clip(np.float32(end.low), np.float32(end.high))
    return y if end.into is None else bytes_of(y, end.into)


def bytes_of(y, scale):
    return (np.rint(y * np.float32(scale.inverse)) + scale.zero).clip(0, 255).astype(np.uint8)
