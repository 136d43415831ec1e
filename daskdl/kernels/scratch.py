"""Scratch memory that each thread keeps from one call of a kernel to the next."""

from __future__ import annotations

import math
import threading
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

_kept = threading.local()


def scratch(name: str, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """Return an array of this shape with anything in it, the same memory for the same name.

    It is good until the same thread asks for that name again: for what a kernel needs while it
    runs, never for a result. New memory costs a page fault for each 4 kB, again in every call.
    """
    buffers = _kept.__dict__
    n_bytes = math.prod(shape) * np.dtype(dtype).itemsize
    buffer = buffers.get(name)
    if buffer is None or buffer.size < n_bytes:
        buffers[name] = None  # let go of the old one first
        buffer = buffers[name] = np.empty(n_bytes, np.uint8)
    array: NDArray[Any] = buffer[:n_bytes].view(dtype).reshape(shape)
    return array
