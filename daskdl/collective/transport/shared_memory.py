"""Shared memory of two processes of one machine, written by one and read by the other.

It has no name: the file lives in memory, and its descriptor travels over a Unix socket. So a killed
process leaves nothing behind, and the size of /dev/shm, 64 MB in many containers, does not matter.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]

#: Bytes from which shared memory is faster than the socket.
WORTH = 1 << 16


class SharedMemory:
    """A piece of shared memory.

    Parameters
    ----------
    descriptor : int
        Descriptor of the file; it is closed here.
    size : int
        Bytes.
    """

    def __init__(self, descriptor: int, size: int) -> None:
        try:
            flags = mmap.MAP_SHARED | getattr(mmap, "MAP_POPULATE", 0)
            self._bytes: Bytes = np.frombuffer(mmap.mmap(descriptor, size, flags), np.uint8)
        finally:
            os.close(descriptor)

    @classmethod
    def made(cls, size: int) -> tuple[SharedMemory, int]:
        """Return new memory, and a descriptor to send to the other process and then close.

        Raises
        ------
        OSError
            When there is not enough memory, or the system has no such files.
        """
        if not hasattr(os, "memfd_create"):
            raise OSError("no files in memory on this system")
        descriptor = os.memfd_create("daskdl")
        try:
            os.posix_fallocate(descriptor, 0, size)  # now, not as a bus error when it is written
            return cls(os.dup(descriptor), size), descriptor
        except BaseException:
            os.close(descriptor)
            raise

    @property
    def size(self) -> int:
        """Its size in bytes."""
        return int(self._bytes.size)

    def write(self, arrays: Sequence[NDArray[np.generic]]) -> None:
        """Put arrays side by side."""
        start = 0
        for array in arrays:
            stop = start + array.nbytes
            self._bytes[start:stop] = array.reshape(-1).view(np.uint8)
            start = stop

    def read(self, arrays: Sequence[NDArray[np.generic]]) -> None:
        """Read arrays that lie side by side."""
        start = 0
        for array in arrays:
            stop = start + array.nbytes
            array.reshape(-1).view(np.uint8)[...] = self._bytes[start:stop]
            start = stop
