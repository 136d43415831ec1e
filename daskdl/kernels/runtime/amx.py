"""Whether this process may use AMX, the tiles of Xeons since Sapphire Rapids."""

from __future__ import annotations

import ctypes
import logging
import platform
from functools import cache

from daskdl.compat.numba_compiler import features

logger = logging.getLogger(__name__)

#: Linux's number of arch_prctl, its request for a processor state, and the number of tiles' data.
_ARCH_PRCTL, _REQUEST, _TILE_DATA = 158, 0x1023, 18


@cache
def permitted() -> bool:
    """Return whether this process may execute AMX's instructions; ask the kernel for it once."""
    needed = {"amx-tile", "amx-bf16", "amx-int8", "avx512bf16"}
    if platform.system() != "Linux" or not needed <= features():
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(_ARCH_PRCTL, _REQUEST, _TILE_DATA) == 0:
        return True
    logger.warning(
        "the operating system does not let this process use AMX (error %d), so that it computes "
        "the same without",
        ctypes.get_errno(),
    )
    return False
