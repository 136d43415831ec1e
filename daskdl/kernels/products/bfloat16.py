"""Matrix products in bfloat16: factors are rounded to 8 bits, and products summed in float32.

Factors are rounded to the nearest, ties to even, when they are put into pairs; denormals become
zeros. A pair is a uint32 of two successive summands. See
:mod:`daskdl.kernels.products.bfloat16_pair` for the order of sums.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.convolution import direct
from daskdl.kernels.convolution.geometry import Geometry
from daskdl.kernels.products import outer
from daskdl.kernels.products.bfloat16_pair import ROUNDED, round_lines, round_numbers
from daskdl.kernels.products.microkernel import address
from daskdl.kernels.products.packing import interleave, packed_weights
from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.memory import empty
from daskdl.kernels.runtime.team import over_range
from daskdl.kernels.runtime.threads import least_of

Array = NDArray[np.float32]
Pairs = NDArray[np.uint32]

_ONE = np.zeros(1, np.int64)
_POINT = Geometry((1, 1))


@jit
def word_of(bits):
    """Return the bfloat16 of a float32, given as the bits of a uint32; see the module."""
    word = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    size = bits & np.uint32(0x7FFFFFFF)
    cut = bits >> np.uint32(16)
    word = cut | np.uint32(0x40) if size > np.uint32(0x7F800000) else word  # NaN
    return cut & np.uint32(0x8000) if size < np.uint32(0x00800000) else word


def along(x: Array) -> Pairs:
    """Return pairs of neighbours in a row: (..., C) -> uint32 (..., C / 2), zero after an odd C."""
    x = np.require(x, np.float32, ("C", "A"))
    columns = x.shape[-1]
    pairs = empty((*x.shape[:-1], -(-columns // 2)), np.uint32)
    source, target = x.view(np.uint32).reshape(-1), pairs.view(np.uint16)
    if columns % 2 == 0:  # as if it were one row
        over_range(_along, len(source), least_of(4), source, target.reshape(-1))
    else:
        rows = source.reshape(-1, columns), target.reshape(-1, columns + 1)
        over_range(_along_rows, len(rows[0]), least_of(4 * columns), *rows)
    return pairs


def across(x: Array) -> Pairs:
    """Return pairs of rows: (R, C) -> uint32 (R / 2, C); zeros complete an odd last row."""
    x = np.require(x, np.float32, ("C", "A"))
    pairs = empty((-(-len(x) // 2), x.shape[1]), np.uint32)
    over_range(_across, len(pairs), least_of(8 * x.shape[1]), x.view(np.uint32), pairs)
    return pairs


def across_pairs(pairs: Pairs, columns: int) -> Pairs:
    """Return the pairs of :func:`across` of (R, columns), made from the pairs of :func:`along`."""
    rows = pairs.reshape(len(pairs), -1)
    turned = empty((-(-len(rows) // 2), columns), np.uint32)
    over_range(_turn, len(turned), least_of(4 * columns), rows.view(np.uint16), turned)
    return turned


def product(a: Pairs, panels: Pairs, columns: int) -> Array:
    """Return the products (M, columns) of pairs (M, K / 2) and of panels of pairs."""
    y = empty((len(a), columns), np.float32)
    if y.size and a.shape[1]:
        four = a[None, None], (panels,), _POINT, columns, y[None, None], False, None
        direct._forward(*four)
    else:
        y[:] = 0
    return y


def matmul(a: Array, b: Array, out: Array | None = None) -> Array:
    """Return ``a @ b`` in bfloat16; float32 (M, K), (K, N), with contiguous rows or columns."""
    if a.flags.f_contiguous and not a.flags.c_contiguous and b.flags.c_contiguous:
        y = outer_product(across(a.T), across(b))
    elif b.flags.f_contiguous and not b.flags.c_contiguous:
        y = product(along(a), columns_of(b.T), b.shape[1])
    else:
        y = product(along(a), rows_of(b), b.shape[1])
    if out is None:
        return y
    out[...] = y
    return out


def outer_product(a: Pairs, b: Pairs) -> Array:
    """Return ``a.T @ b`` (M, N) of :func:`across` pairs of rows, (K / 2, M) and (K / 2, N)."""
    return outer.product(a, b)


def columns_of(weight: Array) -> Pairs:
    """Return panels of ``weight.T``, of weights (N, K)."""
    return packed_weights(along(weight)[:, None], _ONE, False, "bfloat16 panels")


def rows_of(weight: Array) -> Pairs:
    """Return panels of ``weight``, (K, N)."""
    return packed_weights(across(weight)[:, None], _ONE, True, "bfloat16 panels")


@jit
def round_row(source, channels, target, pairs):
    """Write the pairs of neighbours in a row from one address to another, inside a numba function.

    Zeros complete an odd last number, and fill the pairs after it.
    """
    for c in range(0, channels, ROUNDED):
        round_numbers(source + 4 * c, target + 2 * c, min(ROUNDED, channels - c), 2 * pairs - c)
    for c in range(-(-channels // ROUNDED) * ROUNDED, 2 * pairs, ROUNDED):
        round_numbers(source, target + 2 * c, 0, 2 * pairs - c)


@jit
def _along(source, target, which, start, stop):
    lines = (stop - start) // (2 * ROUNDED)
    round_lines(address(source) + 4 * start, address(target) + 2 * start, lines)
    for i in range(start + 2 * ROUNDED * lines, stop):
        target[i] = word_of(source[i])


@jit
def _along_rows(source, target, which, start, stop):
    for row in range(start, stop):
        bits, words = source[row], target[row]
        for i in range(bits.size):
            words[i] = word_of(bits[i])
        words[bits.size] = 0


@jit
def _across(source, target, which, start, stop):
    for r in range(start, stop):
        first, row = source[2 * r], target[r]
        if 2 * r + 1 < source.shape[0]:
            second = source[2 * r + 1]
            for c in range(row.size):
                row[c] = word_of(first[c]) | (word_of(second[c]) << np.uint32(16))
        else:
            for c in range(row.size):
                row[c] = word_of(first[c])


@jit
def _turn(source, target, which, start, stop):
    columns, last = target.shape[1], source.shape[0] - 1
    for r in range(start, stop):
        first, second = source[2 * r, :columns], source[min(2 * r + 1, last), :columns]
        interleave(first, second, 2 * r == last, target[r])
