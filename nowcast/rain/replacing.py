"""Putting a new file or folder in the place of an old one: written beside it, then renamed."""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from daskdl.files import sync, sync_trees


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
    """
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
