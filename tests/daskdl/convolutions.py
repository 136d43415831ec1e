"""Reference convolutions of floats and of bytes, written as sums, for comparison with kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from daskdl.kernels.convolution.geometry import Geometry
from daskdl.kernels.int8.product import End


def draw(*shapes: tuple[int, ...], dtype: Any = np.float64) -> list[np.ndarray]:
    rng = np.random.default_rng([len(shapes), *shapes[0]])
    return [rng.normal(size=shape).astype(dtype) for shape in shapes]


def correlate(x: np.ndarray, weight: np.ndarray, geometry: Geometry) -> np.ndarray:
    """Return the convolution of x (N, H, W, in) with weight (out, kh, kw, in / groups)."""
    grouped = weight.reshape(geometry.groups, -1, *weight.shape[1:])
    y = np.einsum("nhwgcpq,gopqc->nhwgo", _windows(x, geometry), grouped, optimize=True)
    return y.reshape(*y.shape[:3], -1)


def correlate_weight_gradient(x: np.ndarray, dy: np.ndarray, geometry: Geometry) -> np.ndarray:
    """Return the gradient of the weights from the gradient of the result."""
    grouped = dy.reshape(*dy.shape[:3], geometry.groups, -1)
    dw = np.einsum("nhwgcpq,nhwgo->gopqc", _windows(x, geometry), grouped, optimize=True)
    return dw.reshape(-1, *dw.shape[2:])


def _windows(x: np.ndarray, geometry: Geometry) -> np.ndarray:
    """View x as (N, rows, columns, groups, channels, kh, kw)."""
    top, bottom, left, right = geometry.pad
    padded = np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, geometry.reach, (1, 2))
    windows = windows[:, :: geometry.stride[0], :: geometry.stride[1]]
    windows = windows[..., :: geometry.dilation[0], :: geometry.dilation[1]]
    return windows.reshape(*windows.shape[:3], geometry.groups, -1, *geometry.kernel)


@st.composite
def geometries(draw: st.DrawFn) -> tuple[Geometry, tuple[int, int, int, int], int]:
    """Draw (geometry, shape of x, number of filters) over every way a convolution is computed."""
    if draw(st.booleans()):  # Winograd
        k = draw(st.sampled_from([3, 5]))
        kernel, stride = (k, k), (1, 1)
        pad = tuple(draw(st.integers(0, k)) for _ in range(4))
        channels, filters = draw(st.integers(8, 19)), draw(st.integers(8, 19))
        dilation, groups = (1, 1), 1
    else:  # direct products
        kernel = draw(st.tuples(st.integers(1, 5), st.integers(1, 5)))
        stride = draw(st.tuples(st.integers(1, 3), st.integers(1, 3)))
        pad = tuple(draw(st.integers(0, 2)) for _ in range(4))
        dilation = draw(st.tuples(st.integers(1, 3), st.integers(1, 3)))
        groups = draw(st.sampled_from([1, 1, 2, 3]))
        channels, filters = (groups * draw(st.sampled_from([1, 3, 5, 17])) for _ in range(2))
    geometry = Geometry(kernel, stride, pad, dilation, groups)
    reach = geometry.reach
    least = max(1, reach[0] - pad[0] - pad[1]), max(1, reach[1] - pad[2] - pad[3])
    height, width = (draw(st.integers(n, max(n, 13))) for n in least)
    return geometry, (draw(st.integers(1, 3)), height, width, channels), filters


def check_passes(
    module: Any, geometry: Geometry, shape: tuple[int, ...], filters: int, tolerance: float = 1e-10
) -> None:
    """Check the convolution, written over a result and added to one, and its gradients.

    The gradient of x is checked only where the module computes it.
    """
    rng = np.random.default_rng(filters)
    x = rng.normal(size=shape)
    weight = rng.normal(size=(filters, *geometry.kernel, shape[3] // geometry.groups))
    expected = correlate(x, weight, geometry)
    dy = rng.normal(size=expected.shape)
    y = np.full(expected.shape, np.nan)
    module.forward(x, weight, geometry, y, False)
    np.testing.assert_allclose(y, expected, atol=tolerance)
    module.forward(x, weight, geometry, y, True)
    np.testing.assert_allclose(y, 2 * expected, atol=tolerance)
    dw = module.weight_gradient(x, dy, geometry)
    np.testing.assert_allclose(dw, correlate_weight_gradient(x, dy, geometry), atol=10 * tolerance)
    if hasattr(module, "input_gradient"):
        dx = np.full_like(x, np.nan)
        module.input_gradient(dy, weight, geometry, dx)
        for other in (x, x**2):
            products = (dy * correlate(other, weight, geometry)).sum()
            np.testing.assert_allclose((dx * other).sum(), products, rtol=1e-9, atol=1e-9)


def convolved(x, zero, weight, scale, bias, geometry, end=End()):  # noqa: B008
    """Return the convolution of x (N, H, W, in) with weight (out, kh, kw, in / groups) and end."""
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
            patch = wide[:, i * geometry.dilation[0] :, j * geometry.dilation[1] :]
            patch = patch[:, : (rows - 1) * down + 1 : down, : (columns - 1) * across + 1 : across]
            sums += (patch - zero) @ weight[:, i, j].astype(np.int64).T
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
