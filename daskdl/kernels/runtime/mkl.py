"""Intel's MKL from the ``mkl`` extra: its library, its threads and its products."""

from __future__ import annotations

import ctypes
from functools import cache
from importlib import metadata
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

_ROW_MAJOR, _PLAIN, _TRANSPOSED = 101, 111, 112
_ROUTINES = {"f": "cblas_sgemm", "d": "cblas_dgemm"}


@cache
def library() -> ctypes.CDLL | None:
    """Return MKL's single dynamic library, or None if the wheel ``mkl`` is not installed."""
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
    """Set MKL's number of threads for calls from this thread; return the number before.

    0 stands for the process's number.
    """
    mkl = library()
    return 0 if mkl is None else int(mkl.MKL_Set_Num_Threads_Local(n))


def matmul(
    a: NDArray[np.floating], b: NDArray[np.floating], out: NDArray[np.floating]
) -> NDArray[np.floating]:
    """Write ``a @ b`` to ``out``; all are matrices of one dtype, float32 or float64.

    The rows of ``out`` are contiguous, but there may be gaps between them.
    """
    mkl = library()
    assert mkl is not None
    single = out.dtype == np.float32
    number = ctypes.c_float if single else ctypes.c_double
    (left, lead_a, trans_a), (right, lead_b, trans_b) = _operand(a), _operand(b)
    inner = left.shape[1] if trans_a == _PLAIN else left.shape[0]
    # With a single row, numpy's stride is arbitrary.
    lead_out = max(1, out.shape[1], out.strides[0] // out.itemsize)
    getattr(mkl, _ROUTINES[out.dtype.char])(
        _ROW_MAJOR, trans_a, trans_b, out.shape[0], out.shape[1], inner, number(1),
        ctypes.c_void_p(left.ctypes.data), lead_a, ctypes.c_void_p(right.ctypes.data), lead_b,
        number(0), ctypes.c_void_p(out.ctypes.data), lead_out,
    )  # fmt: skip
    return out


def _operand(x):
    """Return a C-contiguous array of ``x`` or ``x.T``, its row length, and MKL's flag."""
    if x.flags.c_contiguous:
        return x, max(1, x.shape[1]), _PLAIN
    if x.flags.f_contiguous:
        return x.T, max(1, x.shape[0]), _TRANSPOSED
    return np.ascontiguousarray(x), max(1, x.shape[1]), _PLAIN
