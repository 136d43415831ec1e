"""Matrix products that are called from Python: numpy's BLAS, or MKL's when it is installed.

Without MKL, gradients to weights are of :mod:`daskdl.kernels.products.outer`, which is quicker at
these. With a budget of several threads the product is cut into parts for a team of them, each by a
BLAS of one thread. OpenBLAS has threads of its own, and two kinds of threads in turn on the same
cores wait for each other: a product right after another kernel took 3 ms more for it, whatever its
size.
"""

from __future__ import annotations

import math

import numpy as np
from numba import types
from numba.extending import overload
from numpy.typing import NDArray

from daskdl.kernels.products import outer
from daskdl.kernels.products.blas import register
from daskdl.kernels.runtime import mkl
from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.team import over_range
from daskdl.kernels.runtime.threads import least_of, n_parts, threads

Array = NDArray[np.floating]

#: Multiplications up to which OpenBLAS keeps to one thread anyway.
FEW = 1 << 18

_sgemm, _dgemm = register("sgemm", by_address=True), register("dgemm", by_address=True)
_ROWS, _COLUMNS, _MATRICES, _SUMMANDS = range(4)  # kinds of parts


def matmul(
    a: NDArray[np.floating],
    b: NDArray[np.floating],
    out: NDArray[np.floating] | None = None,
) -> NDArray[np.floating]:
    """Return ``a @ b``; every matrix product of this package that is called from Python.

    Parameters
    ----------
    a : array (..., M, K)
    b : array (..., K, N)
    out : array (..., M, N), the numbers of a row side by side, optional
    """
    if mkl.library() is None:
        if a.shape[-1] == 1 and b.ndim > 1 and b.shape[-2] == 1 and a.ndim > 1:
            return np.multiply(a, b, out=out)  # for which numpy has a slow loop
        if out is None and a.ndim == 2 and a.size * b.shape[-1] > FEW and outer.serves(a.T, b):
            return outer.product(a.T, b)
        if threads() > 1 and _may_be_shared(a, b):
            return _shared(a, b, out)
        return np.matmul(a, b, out=out)
    dtype = np.result_type(a, b)
    if dtype not in (np.float32, np.float64) or min(a.ndim, b.ndim) < 2:
        return np.matmul(a, b, out=out)
    a, b = a.astype(dtype, copy=False), b.astype(dtype, copy=False)
    lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    if a.shape[-1] != b.shape[-2]:
        return np.matmul(a, b)  # numpy's own error
    if out is None:
        out = np.empty((*lead, a.shape[-2], b.shape[-1]), dtype)
    if not a.shape[-1] or not out.size:
        out[...] = 0
    elif not lead:
        mkl.matmul(a, b, out)
    else:
        a, b = (np.broadcast_to(x, (*lead, *x.shape[-2:])) for x in (a, b))
        for index in np.ndindex(*lead):
            mkl.matmul(a[index], b[index], out[index])
    return out


def stacked(a: Array, b: Array) -> Array:
    """Return ``a @ b`` of (..., M, K) and (..., K, N), each matrix by itself.

    Its bits do not depend on how many there are, as those of :func:`matmul` may.
    """
    if mkl.library() is not None or not 3 <= max(a.ndim, b.ndim) <= 4 or a.dtype != b.dtype:
        return matmul(a, b)
    return _shared(a, b, None, _MATRICES)


def _may_be_shared(a: Array, b: Array) -> bool:
    """Return whether a product is one for the team: large, and of floats of one dtype."""
    if a.dtype != b.dtype or a.dtype not in (np.float32, np.float64):
        return False
    if not (2 <= a.ndim <= 4 and 2 <= b.ndim <= 4) or a.shape[-1] != b.shape[-2]:
        return False
    return max(a.size * b.shape[-1], b.size * a.shape[-2]) > FEW


def _shared(a: Array, b: Array, out: Array | None, kind: int | None = None) -> Array:
    """Return ``a @ b`` with up to two leading axes; parts are the longest of what there is.

    Each part puts all of the other matrix in BLAS' order for itself, so that parts have to be long;
    of the gradient to the weights of a convolution over many pixels that is the sum over these.
    """
    plain = a.ndim == b.ndim == 2
    lead = () if plain else np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    (m, k), n = a.shape[-2:], b.shape[-1]
    if out is None:
        out = np.empty((*lead, m, n), a.dtype)
    matrices = math.prod(lead)
    fits = out.shape == (*lead, m, n) and out.dtype == a.dtype and out.flags.writeable
    if not (m and k and n and matrices and fits):  # numpy's own error, or conversion
        return np.matmul(a, b, out=out)
    if matrices > 1 or kind == _MATRICES:
        kind, items, least = _MATRICES, matrices, least_of(2.0 * m * n * k)
    elif k >= 4 * max(m, n):
        kind, items, least = _SUMMANDS, k, least_of(2.0 * m * n)
    elif m >= n:
        kind, items, least = _ROWS, m, least_of(2.0 * n * k)
    else:
        kind, items, least = _COLUMNS, n, least_of(2.0 * m * k)
    lead = (1,) * (2 - len(lead)) + lead
    left, right = _operand(a, lead), _operand(b, lead)
    steps = [step // a.itemsize for step in out.strides]
    steps = [0] * (4 - out.ndim) + [*steps[:-2], max(n, steps[-2])]
    more = n_parts(items, least) - 1 if kind == _SUMMANDS else 0
    sums = np.empty((more, m, n), out.dtype)  # of the other parts
    places = out.ctypes.data, *steps, sums.ctypes.data
    plan = np.array([kind, lead[1], m, n, k, *left[1:], *right[1:], *places])
    over_range(_multiply, items, least, plan, sums)
    for other in sums:
        out += other
    return out


def _operand(x: Array, lead: tuple[int, ...]) -> tuple[Array, int, int, int, int, int]:
    """Return the array that holds the numbers, its address, and the matrices' layout there.

    That is: whether they are transposed, and how many numbers there are from one to the next along
    both leading axes, and from row to row.
    """
    size, (rows, columns), (down, across) = x.itemsize, x.shape[-2:], x.strides[-2:]
    turned = across != size or down < columns * size
    if turned:
        x, rows, columns, down, across = x.swapaxes(-1, -2), columns, rows, across, down
    apart = columns > 1 and across != size
    if apart or (rows > 1 and (down < columns * size or down % size)):
        x = np.ascontiguousarray(x)
        down = x.strides[-2]
    row = max(columns, down // size) if rows > 1 else columns
    far = near = 0
    if x.ndim > 2:
        far, near = (
            step // size for step in np.broadcast_to(x, (*lead, rows, columns)).strides[:2]
        )
    return x, x.ctypes.data, int(turned), far, near, row


def _gemm(like, transposed, sizes, factors, b, a, c):
    """Call BLAS with addresses; ``sizes``: columns, rows, summands, three lengths of rows."""


@overload(_gemm)
def _gemm_of(like, transposed, sizes, factors, b, a, c):
    routine = _sgemm if like.dtype == types.float32 else _dgemm

    def implementation(like, transposed, sizes, factors, b, a, c):
        letters, at = transposed.ctypes.data, sizes.ctypes.data
        at_factors = factors.ctypes.data
        routine(
            letters, letters + 1, at, at + 4, at + 8, at_factors, b, at + 12, a, at + 16,
            at_factors + like.itemsize, c, at + 20,
        )  # fmt: skip

    return implementation


@jit
def _multiply(plan, like, which, start, stop):
    """Compute the rows, columns or matrices from ``start`` to ``stop``."""
    kind, inner, m, n, k = plan[:5]
    a, a_turned, a_far, a_near, a_row = plan[5:10]
    b, b_turned, b_far, b_near, b_row = plan[10:15]
    c, c_far, c_near, c_row, sums = plan[15:20]
    size = like.itemsize
    first, last = 0, 1
    if kind == _ROWS:
        a += start * (1 if a_turned else a_row) * size
        c += start * c_row * size
        m = stop - start
    elif kind == _COLUMNS:
        b += start * (b_row if b_turned else 1) * size
        c += start * size
        n = stop - start
    elif kind == _SUMMANDS:
        a += start * (a_row if a_turned else 1) * size
        b += start * (1 if b_turned else b_row) * size
        k = stop - start
        if which:
            c, c_row = sums + (which - 1) * m * n * size, n
    else:
        first, last = start, stop
    # Fortran order sees the transposes: c.T = b.T @ a.T.
    letters = np.array([84 if b_turned else 78, 84 if a_turned else 78], np.uint8)
    sizes = np.array([n, m, k, b_row, a_row, c_row], np.int32)
    factors = np.zeros(2, like.dtype)
    factors[0] = 1
    for i in range(first, last):
        far, near = i // inner, i % inner
        at_a = a + (far * a_far + near * a_near) * size
        at_b = b + (far * b_far + near * b_near) * size
        at_c = c + (far * c_far + near * c_near) * size
        _gemm(like, letters, sizes, factors, at_b, at_a, at_c)
