"""Matrix products inside numba functions: OpenBLAS, or MKL when it is installed."""

from __future__ import annotations

import ctypes
from functools import cache

import llvmlite.binding
import numpy as np
import threadpoolctl
from numba import types
from numba.extending import overload
from numpy.typing import NDArray

from daskdl.kernels.runtime import mkl, openblas
from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.threads import is_of_kernels, set_threads


def register(name: str, by_address: bool = False) -> types.ExternalFunction:
    """Make a BLAS routine, MKL's or OpenBLAS's, known to the linker of numba by name.

    A name, unlike a pointer, may stand in code that numba caches on disk. ``by_address``: the
    arguments are given as addresses, int64, and not as pointers.
    """
    symbol = f"daskdl_{name}_at" if by_address else f"daskdl_{name}"
    library = mkl.library()
    if library is not None:
        address = ctypes.cast(getattr(library, f"{name}_"), ctypes.c_void_p).value
    else:
        address = openblas.address(name)
    llvmlite.binding.add_symbol(symbol, address)
    if by_address:
        return types.ExternalFunction(symbol, types.void(*[types.int64] * 13))
    byte, integer = types.CPointer(types.uint8), types.CPointer(types.int32)
    number = types.CPointer(types.float32 if name[0] == "s" else types.float64)
    arguments = (
        *(byte, byte, integer, integer, integer),
        *(number, number, integer, number, integer, number, number, integer),
    )
    return types.ExternalFunction(symbol, types.void(*arguments))


@cache
def _keep_single_threaded() -> None:
    """Keep the kernels' OpenBLAS from starting threads: they call it from several at once."""
    for library in threadpoolctl.ThreadpoolController().lib_controllers:
        if is_of_kernels(library.filepath):
            set_threads(library, 1)


_sgemm = register("sgemm")
_dgemm = register("dgemm")
_keep_single_threaded()


_N, _T = np.array([78], np.uint8), np.array([84], np.uint8)


def _gemm_of(dtype):
    return _sgemm if dtype == types.float32 else _dgemm


def gemm(a, b, c, beta, scratch):
    """Compute ``c = a @ b + beta * c`` inside a numba function; arrays (M, K), (K, N), (M, N).

    All have one dtype and the numbers of a row side by side; rows may lie apart, as those of a
    range of columns do. ``scratch`` is :func:`gemm_scratch`'s result.
    """
    raise NotImplementedError(
        "gemm is for numba functions; use daskdl.kernels.products.matmul from Python"
    )


def gemm_tn(a, b, c, beta, scratch):
    """Compute ``c = a.T @ b + beta * c`` inside a numba function; (K, M), (K, N), (M, N)."""
    raise NotImplementedError(
        "gemm_tn is for numba functions; use daskdl.kernels.products.matmul from Python"
    )


@jit
def gemm_scratch(dtype_of: NDArray[np.floating]) -> tuple[NDArray[np.int32], NDArray[np.floating]]:
    """Return room for the scalar arguments of ``gemm``: one int32 and one float array."""
    return np.empty(6, np.int32), np.empty(2, dtype_of.dtype)


@jit
def _row_length(matrix):
    """Return the numbers from one row to the next; of a single row numpy may say anything."""
    return max(1, matrix.shape[1], matrix.strides[0] // matrix.itemsize)


@overload(gemm)
def _gemm(a, b, c, beta, scratch):
    routine = _gemm_of(a.dtype)

    def implementation(a, b, c, beta, scratch):
        sizes, factors = scratch
        # Fortran order sees the transposes: c.T = b.T @ a.T.
        sizes[0], sizes[1], sizes[2] = b.shape[1], a.shape[0], a.shape[1]
        sizes[3], sizes[4], sizes[5] = _row_length(b), _row_length(a), _row_length(c)
        factors[0], factors[1] = 1.0, beta
        routine(
            _N.ctypes, _N.ctypes, sizes.ctypes, sizes[1:].ctypes, sizes[2:].ctypes,
            factors.ctypes, b.ctypes, sizes[3:].ctypes, a.ctypes, sizes[4:].ctypes,
            factors[1:].ctypes, c.ctypes, sizes[5:].ctypes,
        )  # fmt: skip

    return implementation


@overload(gemm_tn)
def _gemm_tn(a, b, c, beta, scratch):
    routine = _gemm_of(a.dtype)

    def implementation(a, b, c, beta, scratch):
        sizes, factors = scratch
        sizes[0], sizes[1], sizes[2] = b.shape[1], a.shape[1], a.shape[0]
        sizes[3], sizes[4], sizes[5] = _row_length(b), _row_length(a), _row_length(c)
        factors[0], factors[1] = 1.0, beta
        routine(
            _N.ctypes, _T.ctypes, sizes.ctypes, sizes[1:].ctypes, sizes[2:].ctypes,
            factors.ctypes, b.ctypes, sizes[3:].ctypes, a.ctypes, sizes[4:].ctypes,
            factors[1:].ctypes, c.ctypes, sizes[5:].ctypes,
        )  # fmt: skip

    return implementation
