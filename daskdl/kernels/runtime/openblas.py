"""OpenBLAS for kernels: a copy beside numpy's, so that the two may have other numbers of threads.

The wheel ``scipy-openblas32`` is the library alone, as numpy and SciPy build with it. Where it is
not, as with conda, SciPy's BLAS takes its place.
"""

from __future__ import annotations

import ctypes
import importlib.util
from functools import cache
from pathlib import Path

from daskdl.errors import MissingExtraError


@cache
def _library() -> ctypes.CDLL | None:
    """Return the library of the wheel, None where that is not installed."""
    spec = importlib.util.find_spec("scipy_openblas32")
    if spec is None or spec.origin is None:
        return None
    for path in sorted(Path(spec.origin).with_name("lib").glob("libscipy_openblas*")):
        return ctypes.CDLL(str(path))
    return None


def folders() -> set[str]:
    """Return names of folders one of which a file of the library that is used has above it."""
    return {"scipy_openblas32"} if _library() is not None else {"scipy", "scipy.libs"}


def address(name: str) -> int:
    """Return the address of a routine such as "sgemm", of Fortran's interface with int32.

    A MissingExtraError is raised without the wheel and without SciPy.
    """
    library = _library()
    if library is not None:
        pointer = ctypes.cast(getattr(library, f"scipy_{name}_"), ctypes.c_void_p).value
        assert pointer is not None
        return pointer
    from numba.extending import get_cython_function_address

    try:
        return int(get_cython_function_address("scipy.linalg.cython_blas", name))
    except ImportError as error:
        raise MissingExtraError(
            f"{name}: expected the package scipy-openblas32 or SciPy for matrix products inside "
            "kernels, found neither; pip install scipy-openblas32"
        ) from error
