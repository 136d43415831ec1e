"""Matrix products that are called from Python: this package's in float32, or MKL's if installed.

Results of :mod:`daskdl.kernels.products.ordered` have the same bits on all processors and with any
number of threads. OpenBLAS's do not: it has different code for each. Gradients to weights are from
:mod:`daskdl.kernels.products.outer`, which is faster for them. Other dtypes, for checks, use numpy.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.products import outer
from daskdl.kernels.products.microkernel import COLUMNS, LANES, ROWS
from daskdl.kernels.products.ordered import product, room_for
from daskdl.kernels.products.outer import parts_of_sums
from daskdl.kernels.runtime import mkl
from daskdl.kernels.runtime.jit import fastjit, jit
from daskdl.kernels.runtime.passes import flat
from daskdl.kernels.runtime.team import over_range
from daskdl.kernels.runtime.threads import least_of

Array = NDArray[np.floating]

#: Multiplications above which long products use :mod:`daskdl.kernels.products.outer`.
FEW = 1 << 18
#: Time of a multiplication and addition, relative to the time of packing a number.
MULTIPLICATION = 1 / 48

_ROWS, _COLUMNS, _MATRICES, _SUMMANDS = range(4)  # kinds of parts


def matmul(
    a: NDArray[np.floating],
    b: NDArray[np.floating],
    out: NDArray[np.floating] | None = None,
) -> NDArray[np.floating]:
    """Return ``a @ b``; every matrix product of this package that is called from Python.

    a (..., M, K), b (..., K, N), out (..., M, N) with contiguous rows.
    """
    if mkl.library() is None:
        if a.shape[-1] == 1 and b.ndim > 1 and b.shape[-2] == 1 and a.ndim > 1:
            return np.multiply(a, b, out=out)  # numpy's matmul has a slow loop for it
        if out is None and a.ndim == 2 and a.size * b.shape[-1] > FEW and outer.serves(a.T, b):
            return outer.product(a.T, b)
        return _ours(a, b, out) if _is_ours(a, b, out) else np.matmul(a, b, out=out)
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
    """Return ``a @ b`` of (..., M, K) and (..., K, N), each matrix alone.

    Unlike :func:`matmul`'s, its bits do not depend on the number of matrices.
    """
    alone = max(a.ndim, b.ndim) < 3 or not _is_ours(a, b, None)
    return matmul(a, b) if alone or mkl.library() is not None else _ours(a, b, None, whole=True)


def _is_ours(a: Array, b: Array, out: Array | None) -> bool:
    """Return whether a product is float32, of matrices with at most two leading axes."""
    if not a.dtype == b.dtype == np.float32 or (out is not None and out.dtype != np.float32):
        return False
    return 2 <= a.ndim <= 4 and 2 <= b.ndim <= 4 and a.shape[-1] == b.shape[-2]


def _ours(a: Array, b: Array, out: Array | None, whole: bool = False) -> Array:
    """Return ``a @ b`` with up to two leading axes; if ``whole``, no sum is cut into parts.

    Threads share the columns, or the rows; each packs the numbers that it needs.
    """
    two_axes = a.ndim == b.ndim == 2
    lead = () if two_axes else np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    (m, k), n = a.shape[-2:], b.shape[-1]
    if out is None:
        out = np.empty((*lead, m, n), a.dtype)
    matrices = math.prod(lead)
    fits = out.shape == (*lead, m, n) and out.flags.writeable and out.strides[-1] == a.itemsize
    if not (m and k and n and matrices and fits):  # numpy's own error, or zeros
        return np.matmul(a, b, out=out)
    if two_axes and 1 in (m, n):
        out.reshape(-1)[...] = matrix_vector(b.T, a[0]) if m == 1 else matrix_vector(a, b[:, 0])
        return out
    if _cost(n, m, k) + m * n < _cost(m, n, k):
        turned = _ours(b.swapaxes(-1, -2), a.swapaxes(-1, -2), None, whole)
        np.copyto(out, turned.swapaxes(-1, -2))
        return out
    parts = parts_of_sums(k, m, n) if matrices == 1 and not whole else 1
    if matrices > 1:
        kind, items, least = _MATRICES, matrices, least_of(2.0 * m * n * k)
    elif parts > 1:
        kind, items, least = _SUMMANDS, parts, 1
    elif n >= m:
        kind, items, least = _COLUMNS, -(-n // COLUMNS), least_of(2.0 * m * k * COLUMNS)
    else:
        kind, items, least = _ROWS, -(-m // ROWS), least_of(2.0 * n * k * ROWS)
    lead = (1,) * (2 - len(lead)) + lead
    left, right = _operand(a, lead), _operand(b, lead)
    steps = [step // a.itemsize for step in out.strides]
    steps = [0] * (4 - out.ndim) + [*steps[:-2], max(n, steps[-2])]
    sums = np.empty((parts - 1, m, n), out.dtype)  # of the other parts
    places = _address(out), *steps, _address(sums), parts
    plan = np.array([kind, lead[1], m, n, k, *left[1:], *right[1:], *places])
    over_range(_multiply, items, least, plan, sums)
    for other in sums:
        out += other
    return out


def _address(x: Array) -> int:
    return x.__array_interface__["data"][0]  # faster than x.ctypes


def _cost(read: int, ordered: int, k: int) -> float:
    """Return the time of a product, relative to packing a number, if one matrix is read."""
    computed = -(-read // ROWS) * ROWS * -(-ordered // LANES) * LANES
    return k * (ordered + computed * MULTIPLICATION)


def _operand(x: Array, lead: tuple[int, ...]) -> tuple[Array, int, int, int, int, int]:
    """Return the array that holds the numbers, its address, and the matrices' layout there.

    The layout is whether they are transposed, and the steps, in numbers, along both leading axes
    and from row to row.
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
    return x, _address(x), int(turned), far, near, row


@jit
def _multiply(plan, like, which, start, stop):
    """Compute the rows, columns, matrices or parts of sums from ``start`` to ``stop``."""
    kind, inner, m, n, k = plan[:5]
    a, a_turned, a_far, a_near, a_row = plan[5:10]
    b, b_turned, b_far, b_near, b_row = plan[10:15]
    c, c_far, c_near, c_row, sums, parts = plan[15:21]
    size = like.itemsize
    a_row, a_step = (size, a_row * size) if a_turned else (a_row * size, size)
    b_row, b_step = (size, b_row * size) if b_turned else (b_row * size, size)
    c_row *= size
    first, last = 0, 1
    if kind == _ROWS:
        a += start * ROWS * a_row
        c += start * ROWS * c_row
        m = min(m, stop * ROWS) - start * ROWS
    elif kind == _COLUMNS:
        b += start * COLUMNS * b_step
        c += start * COLUMNS * size
        n = min(n, stop * COLUMNS) - start * COLUMNS
    elif kind in (_SUMMANDS, _MATRICES):
        first, last = start, stop
    room = room_for(like, n, k)
    for i in range(first, last):
        if kind == _SUMMANDS:
            begin, end = k * i // parts, k * (i + 1) // parts
            to, row = (c, c_row) if i == 0 else (sums + (i - 1) * m * n * size, n * size)
            operands = a + begin * a_step, a_row, a_step, b + begin * b_row, b_row, b_step
            product(like, (m, n, end - begin), *operands, to, row, False, room)
        else:
            far, near = i // inner, i % inner
            at_a = a + (far * a_far + near * a_near) * size
            at_b = b + (far * b_far + near * b_near) * size
            to = c + (far * c_far + near * c_near) * size
            operands = at_a, a_row, a_step, at_b, b_row, b_step
            product(like, (m, n, k), *operands, to, c_row, False, room)


def matrix_vector(matrix: NDArray[np.float32], vector: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return ``matrix @ vector``; matrix (M, K), with contiguous rows or columns; vector (K,)."""
    result = np.empty(len(matrix), np.float32)
    turned = not matrix.flags.c_contiguous
    rows = flat(matrix.T if turned else matrix).reshape(matrix.shape[:: -1 if turned else 1])
    kernel = _by_columns if turned else _by_rows
    over_range(kernel, len(result), least_of(2.0 * len(vector)), rows, flat(vector), result)
    return result


@fastjit
def _by_rows(matrix, vector, result, which, start, stop):
    for i in range(start, stop):
        row, total = matrix[i], matrix.dtype.type(0)
        for k in range(vector.size):
            total += row[k] * vector[k]
        result[i] = total


@fastjit
def _by_columns(matrix, vector, result, which, start, stop):
    result[start:stop] = 0
    for k in range(vector.size):
        row, factor = matrix[k], vector[k]
        for i in range(start, stop):
            result[i] += row[i] * factor
