"""Convolution written as the sum it is: the reference that kernels have to agree with."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from daskdl.kernels.conv2d import Geometry


def correlate(x: np.ndarray, weight: np.ndarray, geometry: Geometry) -> np.ndarray:
    """Return the convolution of x (N, H, W, in) with weight (out, kh, kw, in)."""
    return np.einsum("nhwcpq,opqc->nhwo", _windows(x, geometry), weight, optimize=True)


def correlate_weight_gradient(x: np.ndarray, dy: np.ndarray, geometry: Geometry) -> np.ndarray:
    """Return the gradient to the weights, from that to the result."""
    return np.einsum("nhwcpq,nhwo->opqc", _windows(x, geometry), dy, optimize=True)


def _windows(x: np.ndarray, geometry: Geometry) -> np.ndarray:
    top, bottom, left, right = geometry.pad
    padded = np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, geometry.kernel, (1, 2))
    return windows[:, :: geometry.stride[0], :: geometry.stride[1]]


@st.composite
def geometries(draw: st.DrawFn) -> tuple[Geometry, tuple[int, int, int, int], int]:
    """Draw (geometry, shape of x, number of filters) over every way a convolution is computed."""
    if draw(st.booleans()):  # Winograd
        k = draw(st.sampled_from([3, 5]))
        kernel, stride = (k, k), (1, 1)
        pad = tuple(draw(st.integers(0, k)) for _ in range(4))
        channels, filters = draw(st.integers(8, 19)), draw(st.integers(8, 19))
    else:  # one product, or im2col
        kernel = draw(st.tuples(st.integers(1, 5), st.integers(1, 5)))
        stride = draw(st.tuples(st.integers(1, 3), st.integers(1, 3)))
        pad = tuple(draw(st.integers(0, 2)) for _ in range(4))
        channels, filters = draw(st.integers(1, 5)), draw(st.integers(1, 5))
    least = max(1, kernel[0] - pad[0] - pad[1]), max(1, kernel[1] - pad[2] - pad[3])
    height, width = draw(st.integers(least[0], 13)), draw(st.integers(least[1], 13))
    return (
        Geometry(kernel, stride, pad),
        (draw(st.integers(1, 3)), height, width, channels),
        filters,
    )
