"""Putting a new file or folder in the place of an old one: written beside it, then renamed."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from daskdl.errors import SettingsError
from daskdl.files import sync, sync_trees


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
def beside(path: Path) -> Iterator[Path]:
    """Give a path next to ``path`` to write to; put it in the place of ``path`` when all went well.

    A file is replaced in one stroke. A directory that is in the way is moved aside first and
    removed afterwards, and put back when the rename fails. What is new is on the disk before it
    has the name, so that a power cut leaves one of the two.

    Raises
    ------
    OSError
        When the folder cannot be written, before anything else is done.
    SettingsError
        When the path is an address.
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
