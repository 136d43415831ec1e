"""numba's helpers for LLVM code: checked in numba 0.61.0 and 0.68.1."""

from numba.core import cgutils
from numba.core.callconv import excinfo_ptr_t

__all__ = ["cgutils", "excinfo_ptr_t"]
