"""Files that survive a power cut and may have several users: locks, fsync, atomic replacement."""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import platform
import re
import shutil
import tempfile
import uuid
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

from daskdl.errors import SettingsError

logger = logging.getLogger(__name__)

#: Errors of file systems without locks, such as Lustre mounted without ``flock``.
_NO_LOCKS = (errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK, errno.EINVAL)


class HeldError(Exception):
    """Another process holds a lock; the message names it, such as "process 7 on node3"."""


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock on a file; the system releases it when the process ends.

    The folder must exist; the file exists while a process holds the lock. Raises HeldError when
    another process holds it, OSError when the file cannot be created.
    """
    handle = _take(path)
    try:
        path.write_text(f"process {os.getpid()} on {platform.node()}\n")
        yield
    finally:
        with suppress(OSError):  # the disk is gone or no longer writable
            path.unlink()
        os.close(handle)


def _take(path: Path) -> int:
    while True:
        handle = _locked_handle(path)
        if _is_named(handle, path):
            return handle
        os.close(handle)


def _locked_handle(path: Path) -> int:
    """Open and lock the file; first read-only, as a file open for writing keeps its disk busy."""
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
            if error.errno != errno.EBADF or how == os.O_RDWR:  # NFS locks writable files only
                raise
    raise AssertionError


def _is_named(handle: int, path: Path) -> bool:
    """Whether a file still has its name; the last holder may have removed it before we locked."""
    try:
        again = os.open(path, os.O_RDONLY)  # not stat, which a network file system may cache
    except FileNotFoundError:
        return False
    try:
        return os.path.samestat(os.fstat(handle), os.fstat(again))
    finally:
        os.close(again)


def sync(path: Path) -> None:
    """Write a file's content, or the names in a folder, to the disk before returning."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_trees(paths: Iterable[Path]) -> None:
    """Write files, and folders with their contents, to the disk before returning."""
    each = []
    for path in paths:
        each.append(path)
        each += path.rglob("*")
    # In parallel, since a disk's journal takes many together at the cost of one.
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(sync, each))


def write_synced(path: Path, content: bytes) -> None:
    """Write a file; its content is on the disk when this returns."""
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def address_of(path: str | os.PathLike[str]) -> str | None:
    """Return the address of a store of fsspec; None for a local path.

    Examples
    --------
    >>> address_of(Path("s3://bucket/rain.zarr")), address_of("rain.zarr")
    ('s3://bucket/rain.zarr', None)
    """
    # A Path has one slash where the address had two.
    match = re.fullmatch(r"([a-z][\w+.-]+):/+(.+)", str(path))
    return None if match is None else f"{match[1]}://{match[2]}"


def check_local(path: Path) -> None:
    """Refuse to write to an address: it does not support replacement by rename."""
    if (address := address_of(path)) is not None:
        raise SettingsError(
            f"{address}: expected a path on a disk, where what is written is put in place by one "
            "rename, found an address; write to a disk and copy it there"
        )


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path next to ``path``; replace ``path`` by it if no exception occurs.

    A file is replaced atomically. An existing directory is moved aside first, removed afterwards,
    and moved back if the rename fails. The new content is on the disk before it gets the name, so
    that a power cut leaves the old or the new one. Raises OSError at once when the folder is not
    writable, and SettingsError when the path is an address.
    """
    check_local(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        tempfile.TemporaryFile(dir=path.parent).close()
    except OSError as error:  # it may name the temporary file, and HDF5's names nothing
        raise OSError(error.errno, error.strerror, str(path.parent)) from None
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.partial")
    try:
        yield temporary
        replace(temporary, path)
    except BaseException:
        remove(temporary)
        raise


def replace(new: Path, path: Path) -> None:
    """Replace ``path`` by the file or directory ``new``."""
    sync_trees([new])
    if not path.is_dir():
        os.replace(new, path)
        sync(path.parent)
        return
    old = previous(path)
    remove(old)
    os.rename(path, old)
    try:
        os.rename(new, path)
    except BaseException:
        os.rename(old, path)
        raise
    sync(path.parent)
    remove(old)


def previous(path: Path) -> Path:
    """Return the temporary name of a directory while a new one replaces it."""
    return path.with_name(f".{path.name}.previous")


def remove(path: Path) -> None:
    """Remove a file or a directory tree if it exists."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
