"""Files that several processes share and that outlast a power cut: locks, and fsync."""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import platform
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

logger = logging.getLogger(__name__)

#: Errors of file systems that know no locks, such as Lustre mounted without ``flock``.
_NO_LOCKS = (errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK, errno.EINVAL)


class HeldError(Exception):
    """Another process holds a lock; the message says which, such as "process 7 on node3"."""


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock that a file is, of which the system lets go when the process ends.

    The file is there while somebody holds it.

    Parameters
    ----------
    path : path
        The file; its folder is there.

    Raises
    ------
    HeldError
        When somebody holds it.
    OSError
        When the file cannot be made.
    """
    handle = _take(path)
    try:
        path.write_text(f"process {os.getpid()} on {platform.node()}\n")
        yield
    finally:
        with suppress(OSError):  # of a disk that has gone or cannot be written any more
            path.unlink()
        os.close(handle)


def _take(path: Path) -> int:
    while True:
        handle = _locked_handle(path)
        if _is_named(handle, path):
            return handle
        os.close(handle)


def _locked_handle(path: Path) -> int:
    """Open and lock the file; for reading, since a file that is written to keeps its disk busy."""
    for how in (os.O_RDONLY, os.O_RDWR):
        handle = os.open(path, how | os.O_CREAT, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return handle
        except OSError as error:
            if isinstance(error, BlockingIOError):
                holder = os.pread(handle, 200, 0).decode(errors="replace").strip()
                os.close(handle)
                raise HeldError(holder or "another process") from None
            if error.errno in _NO_LOCKS:
                logger.warning("%s: no locks here (%s); see that only one writes", path, error)
                return handle
            os.close(handle)
            if error.errno != errno.EBADF or how == os.O_RDWR:  # NFS locks what can be written
                raise
    raise AssertionError


def _is_named(handle: int, path: Path) -> bool:
    """Whether a file still has its name, which its last holder may have taken before we held it."""
    try:
        again = os.open(path, os.O_RDONLY)  # not stat, whose answer a network's client may keep
    except FileNotFoundError:
        return False
    try:
        return os.path.samestat(os.fstat(handle), os.fstat(again))
    finally:
        os.close(again)


def sync(path: Path) -> None:
    """Have a file's content, or the names in a folder, on the disk before going on."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_trees(paths: Iterable[Path]) -> None:
    """Have files, and folders with all that is in them, on the disk before going on."""
    each = []
    for path in paths:
        each.append(path)
        each += path.rglob("*")
    # At the same time, since a disk's journal takes many for the price of one.
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(sync, each))


def write_synced(path: Path, content: bytes) -> None:
    """Write a file that is on the disk when this returns."""
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
