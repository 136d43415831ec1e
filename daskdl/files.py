"""Files that outlast a power cut and have several readers: locks, fsync, replacing in one step."""

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

#: Errors of file systems that know no locks, such as Lustre mounted without ``flock``.
_NO_LOCKS = (errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK, errno.EINVAL)


class HeldError(Exception):
    """Another process holds a lock; the message says which, such as "process 7 on node3"."""


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock that a file is, of which the system lets go when the process ends.

    The folder must exist; the file exists as long as somebody holds the lock. Raises HeldError when
    somebody else holds it, OSError when the file cannot be made.
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


def address_of(path: str | os.PathLike[str]) -> str | None:
    """Return the address of a store that fsspec knows; None for a path of this machine.

    Examples
    --------
    >>> address_of(Path("s3://bucket/rain.zarr")), address_of("rain.zarr")
    ('s3://bucket/rain.zarr', None)
    """
    # A Path has one slash where the address had two.
    match = re.fullmatch(r"([a-z][\w+.-]+):/+(.+)", str(path))
    return None if match is None else f"{match[1]}://{match[2]}"


def check_local(path: Path) -> None:
    """Refuse to write to an address: stores and files are put in place by renaming them."""
    if (address := address_of(path)) is not None:
        raise SettingsError(
            f"{address}: expected a path on a disk, where what is written is put in place by one "
            "rename, found an address; write to a disk and copy it there"
        )


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a path next to ``path`` to write to; put it in the place of ``path`` when all went well.

    A file is replaced in one stroke. A directory that is in the way is moved aside first and
    removed afterwards, and put back when the rename fails. What is new is on the disk before it has
    the name, so that a power cut leaves one of the two. Raises OSError when the folder cannot be
    written, before anything else is done, and SettingsError when the path is an address.
    """
    check_local(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=path.parent):  # an OSError that names the folder, not HDF5's
        pass
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.partial")
    try:
        yield temporary
        replace(temporary, path)
    except BaseException:
        remove(temporary)
        raise


def replace(new: Path, path: Path) -> None:
    """Put the file or directory ``new`` in the place of ``path``."""
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
    """Return the name under which a directory waits while its successor takes its place."""
    return path.with_name(f".{path.name}.previous")


def remove(path: Path) -> None:
    """Remove a file or a directory tree, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
