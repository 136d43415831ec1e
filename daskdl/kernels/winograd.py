"""Stride-1 convolution by Winograd's minimal filtering, 3x3 and 5x5, in all three passes.

Both sizes use the points 0, 1, -1, 2, -2 and infinity, hence tiles of 6x6 inputs: F(4x4, 3x3) and
F(2x2, 5x5) differ in the number of outputs ``m = 7 - kernel`` only. A block of tiles is transformed
at a time, so that it stays in the L2 cache, and 36 matrix products do the work.

A. Lavin and S. Gray, Fast Algorithms for Convolutional Neural Networks, arXiv 1509.09308.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.blas import gemm, gemm_scratch, gemm_tn
from daskdl.kernels.jit import fastjit
from daskdl.kernels.threads import in_parallel

Array = NDArray[np.floating]

#: Tiles per block. At 64 -> 256 channels a block's transforms take 2 MB in float32.
BLOCK = 48
#: Channels that one pass of a transform handles; a constant, so that the compiler unrolls it.
LANES = 16

_SCALE = np.array([1 / 4, -1 / 6, -1 / 6, 1 / 24, 1 / 24, 1])
_POINTS = np.array([0.0, 1.0, -1.0, 2.0, -2.0])


def filter_matrix(kernel: int) -> NDArray[np.float64]:
    """Return G (6, kernel), which takes a filter to its values at the six points."""
    g = np.vander(_POINTS, kernel, increasing=True)
    g = np.vstack([g, np.eye(kernel)[-1]])
    return g * _SCALE[:, None]


def transform_weights(weight: Array) -> Array:
    """Take weights (out, k, k, in) to the transformed domain, (36, in, out)."""
    return _transform(weight, "ap,bq,opqi->abio")


def transform_weights_adjoint(weight: Array) -> Array:
    """Transform the weights of the convolution that takes dy to dx: (36, out, in)."""
    return _transform(weight[:, ::-1, ::-1], "ap,bq,opqi->aboi")


def _transform(weight: Array, subscripts: str) -> Array:
    g = filter_matrix(weight.shape[1]).astype(weight.dtype)
    u = np.einsum(subscripts, g, g, weight, optimize=True)
    return np.ascontiguousarray(u.reshape(36, *u.shape[2:]))


def convolve(
    x: Array, u: Array, kernel: int, pad: tuple[int, int], size: tuple[int, int], out: Array | None
) -> Array:
    """Convolve ``x`` (N, H, W, C) with transformed weights ``u`` (36, C, K) at stride 1.

    Parameters
    ----------
    x, u : arrays of one dtype
    kernel : 3 or 5
    pad : (rows above, columns left)
        Zeros in front; those behind follow from ``size``.
    size : (rows, columns) of the result
    out : array (N, rows, columns, K), optional
        The result is added to it; without it a new array is made.
    """
    n, k, m = x.shape[0], u.shape[2], 7 - kernel
    add = out is not None
    y = out if out is not None else np.empty((n, *size, k), x.dtype)
    tiles = n * -(-size[0] // m) * -(-size[1] // m)
    in_parallel(
        lambda start, stop: _convolve(x, u, y, m, pad[0], pad[1], add, start, stop),
        tiles,
        least=BLOCK,
    )
    return y


def weight_gradient(x: Array, dy: Array, kernel: int, pad: tuple[int, int]) -> Array:
    """Gradient (out, k, k, in) of a convolution of ``x`` (N, H, W, C) to its weights.

    ``dy`` (N, rows, columns, K) is the gradient to its result.
    """
    m = 7 - kernel
    tiles = x.shape[0] * -(-dy.shape[1] // m) * -(-dy.shape[2] // m)

    def partial(start: int, stop: int) -> Array:
        du = np.zeros((36, x.shape[3], dy.shape[3]), x.dtype)
        _accumulate(x, dy, du, m, pad[0], pad[1], start, stop)
        return du

    sums = in_parallel(partial, tiles, least=BLOCK)
    du = sums[0]
    for other in sums[1:]:
        du += other
    g = filter_matrix(kernel).astype(x.dtype)
    du = du.reshape(6, 6, *du.shape[1:])
    return np.ascontiguousarray(np.einsum("ap,bq,abio->opqi", g, g, du, optimize=True))


@fastjit
def _input_transform(x, n, top, left, c0, d, t, v, row):  # type: ignore[no-untyped-def]
    """Write B^T d B of one 6x6 tile and ``LANES`` channels into v[:, row, c0:]."""
    height, width, channels = x.shape[1], x.shape[2], x.shape[3]
    lanes = min(LANES, channels - c0)
    inside = top >= 0 and left >= 0 and top + 6 <= height and left + 6 <= width
    if not inside or lanes < LANES:
        d[:] = 0
    for i in range(max(0, -top), min(6, height - top)):
        for j in range(max(0, -left), min(6, width - left)):
            base = (i * 6 + j) * LANES
            _copy(x[n, top + i, left + j, c0 : c0 + lanes], d[base : base + lanes])
    for j in range(6):
        _six(d, j * LANES, 6 * LANES, t)
    for i in range(6):
        _six(t, i * 6 * LANES, LANES, d)
    for k in range(36):
        _copy(d[k * LANES : k * LANES + lanes], v[k, row, c0 : c0 + lanes])


@fastjit
def _copy(source, target):  # type: ignore[no-untyped-def]
    """Copy up to ``LANES`` numbers; all of them in registers, which is the usual case."""
    if target.size == LANES:
        for c in range(LANES):
            target[c] = source[c]
    else:
        for c in range(target.size):
            target[c] = source[c]


@fastjit
def _multiples(step):  # type: ignore[no-untyped-def]
    """Return 1 to 5 times ``step``, unsigned: an index that cannot be negative vectorises."""
    return (
        np.uintp(step),
        np.uintp(2 * step),
        np.uintp(3 * step),
        np.uintp(4 * step),
        np.uintp(5 * step),
    )


@fastjit
def _six(d, start, step, t):  # type: ignore[no-untyped-def]
    """Apply B^T to six vectors of ``LANES`` numbers, ``step`` apart in d; the same places in t."""
    s1, s2, s3, s4, s5 = _multiples(step)
    for c in range(LANES):
        p = np.uintp(start + c)
        d0, d1, d2, d3, d4, d5 = d[p], d[p + s1], d[p + s2], d[p + s3], d[p + s4], d[p + s5]
        a, b = d4 - 4 * d2, d3 - 4 * d1
        e, f = d4 - d2, 2 * (d3 - d1)
        t[p] = 4 * d0 - 5 * d2 + d4
        t[p + s1] = a + b
        t[p + s2] = a - b
        t[p + s3] = e + f
        t[p + s4] = e - f
        t[p + s5] = 4 * d1 - 5 * d3 + d5


@fastjit
def _output_transform(products, row, m, k0, d, t, y, n, top, left, add):  # type: ignore[no-untyped-def]
    """Write A^T M A of one tile and ``LANES`` channels into y[n, top:, left:, k0:]."""
    channels = y.shape[3]
    lanes = min(LANES, channels - k0)
    for k in range(36):
        _copy(products[k, row, k0 : k0 + lanes], d[k * LANES : k * LANES + lanes])
    for j in range(6):
        _few(d, j * LANES, 6 * LANES, t, m)
    for i in range(m):
        _few(t, i * 6 * LANES, LANES, d, m)
    for i in range(min(m, y.shape[1] - top)):
        for j in range(min(m, y.shape[2] - left)):
            base = (i * 6 + j) * LANES
            target = y[n, top + i, left + j, k0 : k0 + lanes]
            if add:
                for c in range(lanes):
                    target[c] += d[base + c]
            else:
                _copy(d[base : base + lanes], target)


@fastjit
def _few(d, start, step, t, m):  # type: ignore[no-untyped-def]
    """Apply A^T to six vectors; the first ``m`` places of t get the result."""
    s1, s2, s3, s4, s5 = _multiples(step)
    if m == 4:
        for c in range(LANES):
            p = np.uintp(start + c)
            s, e = d[p + s1] + d[p + s2], d[p + s1] - d[p + s2]
            f, g = d[p + s3] + d[p + s4], d[p + s3] - d[p + s4]
            first, last = d[p], d[p + s5]
            t[p] = first + s + f
            t[p + s1] = e + 2 * g
            t[p + s2] = s + 4 * f
            t[p + s3] = e + 8 * g + last
    else:
        for c in range(LANES):
            p = np.uintp(start + c)
            s, e = d[p + s1] + d[p + s2], d[p + s1] - d[p + s2]
            f, g = d[p + s3] + d[p + s4], d[p + s3] - d[p + s4]
            first, last = d[p], d[p + s5]
            t[p] = first + s + f
            t[p + s1] = e + 2 * g + last


@fastjit
def _gradient_transform(dy, n, top, left, m, k0, d, t, z, row):  # type: ignore[no-untyped-def]
    """Write A dy A^T of one tile of gradients and ``LANES`` channels into z[:, row, k0:]."""
    channels = dy.shape[3]
    lanes = min(LANES, channels - k0)
    d[:] = 0
    for i in range(min(m, dy.shape[1] - top)):
        for j in range(min(m, dy.shape[2] - left)):
            base = (i * 6 + j) * LANES
            _copy(dy[n, top + i, left + j, k0 : k0 + lanes], d[base : base + lanes])
    for j in range(m):
        _spread(d, j * LANES, 6 * LANES, t, m)
    for i in range(6):
        _spread(t, i * 6 * LANES, LANES, d, m)
    for k in range(36):
        _copy(d[k * LANES : k * LANES + lanes], z[k, row, k0 : k0 + lanes])


@fastjit
def _spread(d, start, step, t, m):  # type: ignore[no-untyped-def]
    """Apply A to ``m`` vectors; six places of t get the result."""
    s1, s2, s3, s4, s5 = _multiples(step)
    if m == 4:
        for c in range(LANES):
            p = np.uintp(start + c)
            d0, d1, d2, d3 = d[p], d[p + s1], d[p + s2], d[p + s3]
            s, e, f, g = d0 + d2, d1 + d3, d0 + 4 * d2, 2 * d1 + 8 * d3
            t[p] = d0
            t[p + s1] = s + e
            t[p + s2] = s - e
            t[p + s3] = f + g
            t[p + s4] = f - g
            t[p + s5] = d3
    else:
        for c in range(LANES):
            p = np.uintp(start + c)
            d0, d1 = d[p], d[p + s1]
            t[p] = d0
            t[p + s1] = d0 + d1
            t[p + s2] = d0 - d1
            t[p + s3] = d0 + 2 * d1
            t[p + s4] = d0 - 2 * d1
            t[p + s5] = d1


@fastjit
def _convolve(x, u, y, m, pad_top, pad_left, add, start, stop):  # type: ignore[no-untyped-def]
    """Compute the output tiles ``start`` to ``stop`` of ``y``."""
    channels, filters = u.shape[1], u.shape[2]
    down, across = -(-y.shape[1] // m), -(-y.shape[2] // m)
    v = np.empty((36, BLOCK, channels), x.dtype)
    products = np.empty((36, BLOCK, filters), x.dtype)
    d, t = np.zeros(36 * LANES, x.dtype), np.zeros(36 * LANES, x.dtype)
    scratch = gemm_scratch(x)
    for first in range(start, stop, BLOCK):
        count = min(BLOCK, stop - first)
        for r in range(count):
            n, i, j = _tile(first + r, down, across, m)
            for c0 in range(0, channels, LANES):
                _input_transform(x, n, i - pad_top, j - pad_left, c0, d, t, v, r)
        for k in range(36):
            gemm(v[k, :count], u[k], products[k, :count], 0.0, scratch)
        for r in range(count):
            n, i, j = _tile(first + r, down, across, m)
            for k0 in range(0, filters, LANES):
                _output_transform(products, r, m, k0, d, t, y, n, i, j, add)


@fastjit
def _accumulate(x, dy, du, m, pad_top, pad_left, start, stop):  # type: ignore[no-untyped-def]
    """Add the tiles ``start`` to ``stop`` to the transformed gradient ``du`` (36, C, K)."""
    channels, filters = du.shape[1], du.shape[2]
    down, across = -(-dy.shape[1] // m), -(-dy.shape[2] // m)
    v = np.empty((36, BLOCK, channels), x.dtype)
    z = np.empty((36, BLOCK, filters), x.dtype)
    d, t = np.zeros(36 * LANES, x.dtype), np.zeros(36 * LANES, x.dtype)
    scratch = gemm_scratch(x)
    for first in range(start, stop, BLOCK):
        count = min(BLOCK, stop - first)
        for r in range(count):
            n, i, j = _tile(first + r, down, across, m)
            for c0 in range(0, channels, LANES):
                _input_transform(x, n, i - pad_top, j - pad_left, c0, d, t, v, r)
            for k0 in range(0, filters, LANES):
                _gradient_transform(dy, n, i, j, m, k0, d, t, z, r)
        for k in range(36):
            gemm_tn(v[k, :count], z[k, :count], du[k], 1.0, scratch)


@fastjit
def _tile(index, down, across, m):  # type: ignore[no-untyped-def]
    """Return image, first row and first column of a tile."""
    n, rest = divmod(index, down * across)
    i, j = divmod(rest, across)
    return n, i * m, j * m
