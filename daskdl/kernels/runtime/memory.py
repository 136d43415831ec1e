"""Memory for large results: aligned, and kept by the process when an array is freed.

The system gives memory back page by page and clears each page when it is touched again: a step that
writes 300 MB of new weights and moments would pay as much for that as for its arithmetic.
"""

from __future__ import annotations

import ctypes
import math
import threading
import weakref
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

#: Bytes of a cache line and of the widest vector.
ALIGNMENT = 64

#: Results of at least so many bytes are larger than what stays in a core's share of the caches.
LARGE = 1 << 24

#: Results of fewer bytes are numpy's, since malloc has such memory at hand.
SMALL = 1 << 20

#: Bytes of freed results that are kept at most.
KEPT = 1 << 30

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8  # of glibc's malloc.h


def keep_freed() -> bool:
    """Tell glibc's malloc to keep what is freed; return whether it was, as without glibc it is not.

    Blocks up to 1 GiB come from one heap, of which up to 2 GiB stay when free. This holds for the
    first thread and for those that begin later. A thread that has allocated before, as workers have
    that ran tasks before they knew this package, has heaps of 64 MiB, which malloc gives back as
    soon as one is empty.
    """
    try:
        libc = ctypes.CDLL(None)
    except (OSError, TypeError):
        return False
    if not hasattr(libc, "gnu_get_libc_version"):  # a mallopt of another kind, or none
        return False
    mallopt = libc.mallopt
    keeps = mallopt(_M_MMAP_THRESHOLD, 1 << 30) and mallopt(_M_TRIM_THRESHOLD, (1 << 31) - 1)
    return bool(keeps and mallopt(_M_ARENA_MAX, 1))


def empty(shape: int | tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """Return an array of any content like ``numpy.empty``; at a multiple of 64 bytes if not small.

    The memory of a large one is used again, by whichever thread, when its last view is gone.
    """
    dtype = np.dtype(dtype)
    n_bytes = math.prod(shape if isinstance(shape, tuple) else (shape,)) * dtype.itemsize
    planned = _planned.place
    if planned is not None and planned.size == n_bytes:
        _planned.place = None
        return planned.view(dtype).reshape(shape)
    if n_bytes < SMALL:
        return np.empty(shape, dtype)
    block = _freed.take(n_bytes) if n_bytes >= LARGE else None
    if block is None:
        block = np.empty(n_bytes + ALIGNMENT, np.uint8)
    start = -block.ctypes.data % ALIGNMENT
    if n_bytes < LARGE:
        return block[start : start + n_bytes].view(dtype).reshape(shape)
    # All views of the result refer to the lease; it is what ends with the last of them.
    lease = (ctypes.c_char * n_bytes).from_buffer(block.data, start)
    weakref.finalize(lease, _freed.put, block).atexit = False
    return np.frombuffer(memoryview(lease), dtype).reshape(shape)


class _Planned(threading.local):
    place: NDArray[np.uint8] | None = None


_planned = _Planned()


def plan(place: NDArray[np.uint8] | None) -> None:
    """Let this thread's next result of just so many bytes lie at a place that is free for it.

    Who plans knows when the result is not needed any more; None takes the place back.
    """
    _planned.place = place


def block_of(n_bytes: int) -> NDArray[np.uint8]:
    """Return so many bytes of any content, at a multiple of 64."""
    block = np.empty(n_bytes + ALIGNMENT, np.uint8)
    start = -block.ctypes.data % ALIGNMENT
    return block[start : start + n_bytes]


class _Freed:
    """Blocks whose arrays are gone, the latest last."""

    def __init__(self) -> None:
        self._blocks: list[NDArray[np.uint8]] = []
        # Reentrant: freeing memory below may run finalizers that put blocks here.
        self._lock = threading.RLock()

    def take(self, n_bytes: int) -> NDArray[np.uint8] | None:
        """Return a block for so many bytes, at most a quarter larger, or None."""
        need = n_bytes + ALIGNMENT
        with self._lock:
            for i in reversed(range(len(self._blocks))):
                if need <= self._blocks[i].size <= need + need // 4:
                    return self._blocks.pop(i)
        return None

    def put(self, block: NDArray[np.uint8]) -> None:
        """Keep a block, and let the oldest go while they are more than :data:`KEPT` bytes."""
        with self._lock:
            self._blocks.append(block)
            while sum(b.size for b in self._blocks) > KEPT:
                self._blocks.pop(0)


_freed = _Freed()


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
