"""How this package compiles with numba: no GIL, numpy's error model, cached on disk."""

from __future__ import annotations

from typing import Any

import numba

#: Decorator of exact kernels.
jit: Any = numba.njit(nogil=True, error_model="numpy", cache=True)

#: Decorator of kernels whose sums may be reordered. NaN and infinity stay what they are (LLVM's
#: flags nnan and ninf are left out, at no cost in speed): a loss that diverged has to show.
fastjit: Any = numba.njit(
    nogil=True,
    error_model="numpy",
    cache=True,
    fastmath={"nsz", "arcp", "contract", "afn", "reassoc"},
)
