"""Memory for large results: aligned, and kept by the process when an array is freed.

The system takes freed memory back page by page and clears each page when it is used again. For a
step that writes 300 MB of new weights and moments, this would cost as much as its arithmetic.
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

#: Bytes from which a result is larger than a core's share of the caches.
LARGE = 1 << 24

#: Bytes below which numpy allocates results: a view takes longer than their alignment saves.
SMALL = 1 << 12

#: Most bytes of freed results that are kept.
KEPT = 1 << 30

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8  # from glibc's malloc.h


def keep_freed() -> bool:
    """Make glibc's malloc keep freed memory; return whether it does (False without glibc).

    Blocks up to 1 GiB come from one heap, which keeps up to 2 GiB of free memory. This holds for
    the main thread and for threads that begin later. A thread that has allocated before, such as a
    worker's that ran tasks before the import, has heaps of 64 MiB; malloc returns each one to the
    system as soon as it is empty.
    """
    try:
        libc = ctypes.CDLL(None)
    except (OSError, TypeError):
        return False
    if not hasattr(libc, "gnu_get_libc_version"):  # another mallopt, or none
        return False
    mallopt = libc.mallopt
    keeps = mallopt(_M_MMAP_THRESHOLD, 1 << 30) and mallopt(_M_TRIM_THRESHOLD, (1 << 31) - 1)
    return bool(keeps and mallopt(_M_ARENA_MAX, 1))


def empty(shape: int | tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """Return an array of any content like ``numpy.empty``; aligned to 64 bytes if not small.

    When the last view of a large array is gone, any thread may use its memory again.
    """
    dtype = np.dtype(dtype)
    n_bytes = math.prod(shape if isinstance(shape, tuple) else (shape,)) * dtype.itemsize
    planned = _planned.place
    if planned is not None and planned.size == n_bytes:
        _planned.place = None
        return planned.view(dtype).reshape(shape)
    if n_bytes < LARGE:
        return np.empty(shape, dtype) if n_bytes < SMALL else aligned(shape, dtype)
    block = _freed.take(n_bytes)
    if block is None:
        block = np.empty(n_bytes + ALIGNMENT, np.uint8)
    start = -block.ctypes.data % ALIGNMENT
    # All views of the result refer to the lease, so it ends with the last view.
    lease = (ctypes.c_char * n_bytes).from_buffer(block.data, start)
    weakref.finalize(lease, _freed.put, block).atexit = False
    return np.frombuffer(memoryview(lease), dtype).reshape(shape)


class _Planned(threading.local):
    place: NDArray[np.uint8] | None = None


_planned = _Planned()


def plan(place: NDArray[np.uint8] | None) -> None:
    """Put this thread's next result with the size of ``place`` into that memory.

    The planner knows when the result is no longer needed. None withdraws the place.
    """
    _planned.place = place


def aligned(shape: int | tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """Return an array of any content that begins at a cache line.

    A vector that spans two lines takes twice as long to load or store, and so does a row of a tile.
    """
    dtype = np.dtype(dtype)
    n_bytes = math.prod(shape if isinstance(shape, tuple) else (shape,)) * dtype.itemsize
    block = np.empty(n_bytes + ALIGNMENT, np.uint8)
    start = -block.ctypes.data % ALIGNMENT
    return block[start : start + n_bytes].view(dtype).reshape(shape)


class _Freed:
    """Blocks of arrays that were freed, the latest last."""

    def __init__(self) -> None:
        self._blocks: list[NDArray[np.uint8]] = []
        # Reentrant: freeing memory below may run finalizers that put blocks here.
        self._lock = threading.RLock()

    def take(self, n_bytes: int) -> NDArray[np.uint8] | None:
        """Return a block for ``n_bytes`` bytes, at most a quarter larger, or None."""
        need = n_bytes + ALIGNMENT
        with self._lock:
            for i in reversed(range(len(self._blocks))):
                if need <= self._blocks[i].size <= need + need // 4:
                    return self._blocks.pop(i)
        return None

    def put(self, block: NDArray[np.uint8]) -> None:
        """Keep a block; drop the oldest blocks while all have more than :data:`KEPT` bytes."""
        with self._lock:
            self._blocks.append(block)
            while sum(b.size for b in self._blocks) > KEPT:
                self._blocks.pop(0)


_freed = _Freed()


Array = NDArray[Any]

#: Most views of one memory that are kept, to avoid making them again in each step.
VIEWS = 256

#: Memory by name, with its views by shape and dtype.
_kept = threading.local()


def scratch(name: str, shape: tuple[int, ...], dtype: DTypeLike) -> Array:
    """Return an :func:`aligned` array of any content; the same name gets the same memory.

    It is valid until the same thread asks for this name again: use it while a kernel runs, never
    for a result. It saves the page faults of new memory, one for each 4 kB in every call.
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
        buffer = None  # free the old one first
        buffer = aligned(n_bytes, np.uint8)
        _kept.__dict__[name] = buffer, views
    array = views[shape, dtype] = buffer[:n_bytes].view(dtype).reshape(shape)
    return array
