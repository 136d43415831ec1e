"""Precision: whether a thread multiplies matrices in float32 or in bfloat16.

Products of bfloat16 are summed in one of two orders: in pairs, as VDPBF16PS does, or in tiles, as
AMX does (Xeons since Sapphire Rapids). Each order gives the same bits on every processor, and is
fast on processors that have its instruction.
"""

from __future__ import annotations

import ctypes
import logging
import platform
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.compat.numba_compiler import features
from daskdl.errors import SettingsError

logger = logging.getLogger(__name__)

#: Names of the precisions; "bf16" stands for one of the next two, depending on the processor.
PRECISIONS = ("float32", "bf16", "bf16-pairs", "bf16-tiles")

#: Least features, in and out, of a layer with products in bfloat16. With fewer, products take no
#: time, and a layer with few results is the last one, whose digits matter.
LEAST = 16

#: Linux's system call arch_prctl, its request for a processor state, and the state of AMX's tiles.
_ARCH_PRCTL, _REQUEST, _TILE_DATA = 158, 0x1023, 18


@cache
def permitted() -> bool:
    """Return whether this process may use AMX's instructions; ask Linux for permission once."""
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


class _Local(threading.local):
    name = "float32"


_local = _Local()


def precision() -> str:
    """Return the precision of this thread's products: "float32", "bf16-pairs" or "bf16-tiles"."""
    return _local.name


def precision_of(*weights: NDArray[Any]) -> str:
    """Return the current precision of products with these weights, matrices."""
    wide = all(w.dtype == np.float32 and min(w.shape) >= LEAST for w in weights)
    return precision() if wide else "float32"


def resolved(name: str, tiles: bool | None = None) -> str:
    """Return a precision's name; for "bf16", the name with its order of sums.

    ``tiles`` says whether the processors of a run have AMX; by default, whether this process may
    use it.
    """
    if name != "bf16":
        return name
    return "bf16-tiles" if (permitted() if tiles is None else tiles) else "bf16-pairs"


@contextmanager
def computing_in(name: str) -> Iterator[None]:
    """Compute products inside in this precision; their backward passes use the same.

    Parameters
    ----------
    name : one of :data:`PRECISIONS`
        "bf16" rounds factors to bfloat16 and sums products in float32, in the operations that
        :doc:`the page on precision </precision>` names; all others compute in float32.
    """
    before, _local.name = _local.name, resolved(name)
    try:
        yield
    finally:
        _local.name = before


def check_precision(where: str, name: str) -> None:
    """Raise a SettingsError unless a precision has this name."""
    if name not in PRECISIONS:
        near = name in ("bfloat16", "torch.bfloat16", "bf16-mixed", "mixed_bfloat16")
        raise SettingsError(
            f"{where}, precision: expected one of {', '.join(PRECISIONS)}, found {name!r}; "
            + ("write bf16" if near else "leave it out for float32")
        )
