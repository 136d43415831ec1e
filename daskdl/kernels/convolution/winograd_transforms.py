"""Small linear maps along both axes of a tile, in LLVM's vectors, for Winograd's convolution.

The points 0, 1, -1, 2, -2 (and 1/2, -1/2) come in pairs of opposite sign, so that half of all sums
are shared; :func:`apply` finds them from the matrix.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from daskdl.compat.numba_compiler import cgutils
from daskdl.kernels.products.finish import kinds, write_finished
from daskdl.kernels.products.microkernel import LANES
from daskdl.kernels.runtime.llvm import BYTE, load, store, whole

Matrix = NDArray[np.float64]


class Scheme(NamedTuple):
    """The matrices of F(m x m, kernel x kernel) on tiles of side m + kernel - 1.

    The result of a tile d under a filter g is ``output @ ((filter g filter') * (input d input')) @
    output'``; the literature calls input, filter and output B', G and A'.
    """

    kernel: int
    m: int
    input: Matrix
    filter: Matrix
    output: Matrix


def scheme(kernel: int, m: int) -> Scheme:
    """Return the matrices for these sizes (Cook and Toom's interpolation)."""
    side = m + kernel - 1
    points = np.array([0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5])[: side - 1]
    rows = [np.poly(np.delete(points, i))[::-1] for i in range(side - 1)]
    last = np.poly(points)[::-1]
    to_input = np.vstack([[np.append(row, 0.0) for row in rows], last])
    scale = [1 / np.prod(points[i] - np.delete(points, i)) for i in range(side - 1)]
    to_filter = np.vander(points, kernel, increasing=True) * np.array(scale)[:, None]
    to_output = np.vander(points, m, increasing=True).T
    return Scheme(
        kernel,
        m,
        to_input,
        np.vstack([to_filter, np.eye(kernel)[-1]]),
        np.column_stack([to_output, np.eye(m)[-1]]),
    )


def apply(matrix: Matrix, vectors: Sequence[Any]) -> list[Any]:
    """Return ``matrix @ vectors`` in few operations; vectors have ``+``, ``-`` and ``* float``."""
    matrix, vectors = matrix.copy(), list(vectors)
    rows, columns = matrix.shape
    for c in range(1, columns - 1, 2):
        left, right = matrix[:, c].copy(), matrix[:, c + 1].copy()
        same, opposite = left == right, left == -right
        if (same | opposite).all() and same.any() and opposite.any():
            # Each row needs only the sum or the difference of the two.
            first, second = vectors[c], vectors[c + 1]
            vectors[c], vectors[c + 1] = first + second, first - second
            matrix[:, c] = np.where(same, left, 0)
            matrix[:, c + 1] = np.where(same, 0, left)
    results: list[Any] = [None] * rows
    for r in range(rows):
        if results[r] is not None:
            continue
        here, below = matrix[r], matrix[min(r + 1, rows - 1)]
        same, opposite = here == below, here == -below
        shared = (same & (here != 0)).any() and (opposite & (here != 0)).any()
        if r + 1 < rows and shared and (same | opposite).all():
            even = _sum(np.where(same, here, 0), vectors)
            odd = _sum(np.where(same, 0, here), vectors)
            results[r], results[r + 1] = even + odd, even - odd
        else:
            results[r] = _sum(here, vectors)
    return results


def _sum(factors: NDArray[np.float64], vectors: Sequence[Any]) -> Any:
    terms = [(f, v) for f, v in zip(factors, vectors, strict=True) if f]
    terms.sort(key=lambda term: term[0] != 1)  # begin with a term without a product
    factor, vector = terms[0]
    total = vector if factor == 1 else vector * float(factor)
    for factor, vector in terms[1:]:
        if abs(factor) == 1:
            total = total + vector if factor > 0 else total - vector
        else:
            total = total + vector * float(factor)
    return total


class _Vector:
    """A value of LLVM's vector type that :func:`apply` can compute with."""

    def __init__(self, builder: ir.IRBuilder, value: Any) -> None:
        self.builder, self.value = builder, value

    def __add__(self, other: _Vector) -> _Vector:
        return _Vector(
            self.builder, self.builder.fadd(self.value, other.value, flags=("contract",))
        )

    def __sub__(self, other: _Vector) -> _Vector:
        return _Vector(
            self.builder, self.builder.fsub(self.value, other.value, flags=("contract",))
        )

    def __mul__(self, factor: float) -> _Vector:
        same = ir.Constant(self.value.type, [factor] * LANES)
        return _Vector(self.builder, self.builder.fmul(self.value, same, flags=("contract",)))


def tile_transform(matrix: Matrix, add: bool = False, finishes: bool = False) -> Any:
    """Return a numba function that maps a tile X to ``matrix @ X @ matrix.T``, by channel.

    With ``add`` it adds the result to the target. One that ``finishes`` takes four more
    arguments, see :func:`daskdl.kernels.products.finish.kinds`.

    Arguments are an array of the dtype; address, row step and column step of the source; the same
    of the target; and the number of channels, contiguous in both, a multiple of ``LANES`` above 0.
    Steps are in bytes.
    """
    out_side, in_side = matrix.shape

    def typed(like):
        signature = types.void(like, *[types.intp] * 7, *(kinds(like) if finishes else ()))

        def generate(context, builder, signature, args):
            number = context.get_data_type(signature.args[0].dtype)
            size = 4 if signature.args[0].dtype == types.float32 else 8
            vector = ir.VectorType(number, LANES)
            _, source, source_row, source_column, target, target_row, target_column, n, *rest = args
            # Columns first, into memory on the stack: a whole tile would not fit into registers.
            between = cgutils.alloca_once(builder, ir.ArrayType(vector, out_side * in_side))
            between = builder.bitcast(between, BYTE)
            width = LANES * size
            with cgutils.for_range(builder, builder.sdiv(n, whole(LANES))) as loop:
                offset = builder.mul(loop.index, whole(width))

                def place(start: Any, row: Any, i: int, column: Any, j: int) -> Any:
                    total = builder.add(start, offset)
                    total = builder.add(total, builder.mul(row, whole(i)))
                    total = builder.add(total, builder.mul(column, whole(j)))
                    return builder.inttoptr(total, BYTE)

                for j in range(in_side):
                    column = [
                        load(
                            builder, place(source, source_row, i, source_column, j), 0, vector, size
                        )
                        for i in range(in_side)
                    ]
                    results = apply(matrix, [_Vector(builder, value) for value in column])
                    for i, result in enumerate(results):
                        store(builder, result.value, between, (i * in_side + j) * width, size)
                for i in range(out_side):
                    row = [
                        load(builder, between, (i * in_side + j) * width, vector, size)
                        for j in range(in_side)
                    ]
                    results = apply(matrix, [_Vector(builder, value) for value in row])
                    if finishes:
                        places = [
                            (place(target, target_row, i, target_column, j), offset)
                            for j in range(out_side)
                        ]
                        write_finished(builder, [r.value for r in results], places, rest)
                        continue
                    for j, result in enumerate(results):
                        to = place(target, target_row, i, target_column, j)
                        if add:
                            result = _Vector(builder, load(builder, to, 0, vector, size)) + result
                        store(builder, result.value, to, 0, size)
            return context.get_dummy_value()

        return signature, generate

    if finishes:

        @intrinsic
        def transform_and_end(
            context, like, source, source_row, source_column, target, target_row, target_column, n,
            bias, residual, low, high,
        ):  # fmt: skip
            return typed(like)

        return transform_and_end

    @intrinsic
    def transform(
        context, like, source, source_row, source_column, target, target_row, target_column, n
    ):
        return typed(like)

    return transform
