"""A radar file without the gzip or bzip2 that archives wrap it in."""

from __future__ import annotations

import bz2
import gzip
import shutil
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path

from daskdl.errors import DataError


def _opener(path: Path) -> gzip.GzipFile | bz2.BZ2File | BufferedReader:
    with path.open("rb") as file:
        magic = file.read(3)
    if magic[:2] == b"\x1f\x8b":
        return gzip.open(path, "rb")
    if magic == b"BZh":
        return bz2.open(path, "rb")
    return path.open("rb")


def read_bytes(path: Path, count: int = -1) -> bytes:
    """Return the first ``count`` bytes of a file (all by default), unpacked.

    Raises
    ------
    DataError
        When the file cannot be read or its compression breaks off.
    """
    try:
        with _opener(path) as file:
            return file.read(count)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path}: cannot be read to its end ({error})") from error


@contextmanager
def plain_file(path: Path) -> Iterator[Path]:
    """Give the path of the unpacked file: ``path`` itself, or a temporary copy if it is packed."""
    with path.open("rb") as file:
        packed = file.read(3)[:2] in (b"\x1f\x8b", b"BZ")
    if not packed:
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="nowcast-") as folder:
        plain = Path(folder) / path.stem
        try:
            with _opener(path) as packed_file, plain.open("wb") as file:
                shutil.copyfileobj(packed_file, file)
        except (OSError, EOFError, zlib.error) as error:
            raise DataError(f"{path}: cannot be unpacked to its end ({error})") from error
        yield plain
