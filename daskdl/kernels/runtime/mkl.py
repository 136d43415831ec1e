"""Intel's MKL, when the ``mkl`` extra is installed: where it lies, its threads, its bfloat16."""

from __future__ import annotations

import ctypes
from functools import cache
from importlib import metadata
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import MissingExtraError

_ROW_MAJOR, _PLAIN, _TRANSPOSED = 101, 111, 112
_ROUTINES = {"f": "cblas_sgemm", "d": "cblas_dgemm"}


@cache
def library() -> ctypes.CDLL | None:
    """Return MKL's single dynamic library, or None when the wheel ``mkl`` is not installed."""
    try:
        distribution = metadata.distribution("mkl")
    except metadata.PackageNotFoundError:
        return None
    for file in distribution.files or ():
        path = Path(str(distribution.locate_file(file)))
        if path.name.startswith("libmkl_rt.so") and path.is_file():
            return ctypes.CDLL(str(path.resolve()))
    return None


def set_local_threads(n: int) -> int:
    """Set how many threads MKL uses when the calling thread calls it; return what it was.

    0 stands for the number that holds for the process.
    """
    mkl = library()
    return 0 if mkl is None else int(mkl.MKL_Set_Num_Threads_Local(n))


def matmul(
    a: NDArray[np.floating], b: NDArray[np.floating], out: NDArray[np.floating]
) -> NDArray[np.floating]:
    """Write ``a @ b`` of matrices of one dtype, float32 or float64, to ``out``.

    The numbers of a row of ``out`` lie side by side, its rows may lie apart.
    """
    mkl = library()
    assert mkl is not None
    single = out.dtype == np.float32
    number = ctypes.c_float if single else ctypes.c_double
    (left, lead_a, trans_a), (right, lead_b, trans_b) = _operand(a), _operand(b)
    routine = getattr(mkl, _ROUTINES[out.dtype.char])
    _call(routine, number, left, lead_a, trans_a, right, lead_b, trans_b, out)
    return out


def matmul_bf16(
    a: NDArray[np.float32], b: NDArray[np.float32], out: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Write ``a @ b`` of float32 matrices rounded to bfloat16, summed in float32, to ``out``.

    On CPUs with AMX several times as fast as float32, on others mostly slower.

    Raises
    ------
    MissingExtraError
        Without MKL.
    """
    mkl = library()
    if mkl is None:
        raise MissingExtraError(
            "precision='bf16': expected Intel's MKL, found it not installed; "
            "pip install 'daskdl[mkl]'"
        )
    from daskdl.kernels.products.bfloat16 import to_bfloat16

    (left, lead_a, trans_a), (right, lead_b, trans_b) = _operand(a), _operand(b)
    left, right = to_bfloat16(left), to_bfloat16(right)
    routine = mkl.cblas_gemm_bf16bf16f32
    _call(routine, ctypes.c_float, left, lead_a, trans_a, right, lead_b, trans_b, out)
    return out


def _operand(x):
    """Return the array whose memory holds ``x`` row by row, its row length, and how it lies."""
    if x.flags.c_contiguous:
        return x, max(1, x.shape[1]), _PLAIN
    if x.flags.f_contiguous:
        return x.T, max(1, x.shape[0]), _TRANSPOSED
    return np.ascontiguousarray(x), max(1, x.shape[1]), _PLAIN


def _call(routine, number, a, lead_a, trans_a, b, lead_b, trans_b, out):
    inner = a.shape[1] if trans_a == _PLAIN else a.shape[0]
    # Of a single row's stride numpy may say anything.
    lead_out = max(1, out.shape[1], out.strides[0] // out.itemsize)
    routine(
        _ROW_MAJOR, trans_a, trans_b, out.shape[0], out.shape[1], inner, number(1),
        ctypes.c_void_p(a.ctypes.data), lead_a, ctypes.c_void_p(b.ctypes.data), lead_b,
        number(0), ctypes.c_void_p(out.ctypes.data), lead_out,
    )  # fmt: skip
