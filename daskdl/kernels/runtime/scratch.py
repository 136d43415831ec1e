"""Scratch memory that each thread keeps from one call of a kernel to the next."""

from __future__ import annotations

import math
import threading
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from daskdl.kernels.runtime.memory import ALIGNMENT

Array = NDArray[Any]

#: Views of one memory that are kept, so that they are not made again in each step.
VIEWS = 256

#: Memory by name, with its views by shape and dtype.
_kept = threading.local()


def scratch(name: str, shape: tuple[int, ...], dtype: DTypeLike) -> Array:
    """Return an array of this shape with anything in it, the same memory for the same name.

    It begins at a cache line: vectors that lie across two take twice as long to load and store. It
    is good until the same thread asks for that name again: for what a kernel needs while it
    runs, never for a result. New memory costs a page fault for each 4 kB, again in every call.
    """
    none: dict[Any, Array] = {}
    buffer, views = _kept.__dict__.get(name, (None, none))
    array = views.get((shape, dtype))
    if array is not None:
        return array
    n_bytes = math.prod(shape) * np.dtype(dtype).itemsize
    if buffer is None or buffer.size < n_bytes or len(views) == VIEWS:
        views.clear()
    if buffer is None or buffer.size < n_bytes:
        _kept.__dict__.pop(name, None)
        buffer = None  # let go of the old one first
        block = np.empty(n_bytes + ALIGNMENT, np.uint8)
        start = -block.ctypes.data % ALIGNMENT
        buffer = block[start : start + n_bytes]
        _kept.__dict__[name] = buffer, views
    array = views[shape, dtype] = buffer[:n_bytes].view(dtype).reshape(shape)
    return array
