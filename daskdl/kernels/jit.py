"""How this package compiles with numba: no GIL, numpy's error model, cached on disk."""

from __future__ import annotations

from typing import Any

import numba

#: Decorator of exact kernels.
jit: Any = numba.njit(nogil=True, error_model="numpy", cache=True)

#: Decorator of kernels in which NaN and infinity need no care: sums may be reordered.
fastjit: Any = numba.njit(nogil=True, error_model="numpy", cache=True, fastmath=True)
