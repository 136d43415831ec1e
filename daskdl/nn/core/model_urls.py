"""Model files behind a URL, of any store that fsspec knows, by way of a local copy."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from daskdl.errors import ModelFileError


def is_url(path: str | Path) -> bool:
    """Return whether this names a file by its protocol, as in ``s3://bucket/model.safetensors``."""
    return "://" in str(path)


def _store(url: str) -> tuple[Any, str]:
    """Return the file system of a URL and the file's name there."""
    import fsspec

    try:
        file_system, name = fsspec.url_to_fs(url)
    except (ImportError, ValueError) as error:  # a package that is missing, a protocol unknown
        raise ModelFileError(
            f"{url}: the store cannot be reached ({error})"
            "; install the package of this protocol, such as s3fs"
        ) from error
    return file_system, name


@contextmanager
def fetched(url: str) -> Iterator[Path]:
    """Give a local copy of a file for as long as the block lasts.

    Raises
    ------
    ModelFileError
        When there is no such file, or its store cannot be reached.
    """
    file_system, name = _store(url)
    with tempfile.TemporaryDirectory(prefix="daskdl-") as folder:
        copy = Path(folder) / "model.safetensors"
        try:
            file_system.get_file(name, str(copy))
        except FileNotFoundError:
            raise ModelFileError(
                f"{url}: there is no such model file; see the bucket and the name"
            ) from None
        except OSError as error:
            raise ModelFileError(f"{url}: cannot be read ({error})") from error
        yield copy


@contextmanager
def sent(url: str) -> Iterator[Path]:
    """Give the name of a local file that is sent to a URL when the block has ended well.

    Raises
    ------
    ModelFileError
        When its store cannot be reached or written.
    """
    file_system, name = _store(url)
    with tempfile.TemporaryDirectory(prefix="daskdl-") as folder:
        local = Path(folder) / "model.safetensors"
        yield local
        try:
            file_system.put_file(str(local), name)
        except OSError as error:
            raise ModelFileError(
                f"{url}: cannot be written ({error}); see the rights to that store"
            ) from error
