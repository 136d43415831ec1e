"""A radar file without the gzip or bzip2 of archives, with a bounded size."""

from __future__ import annotations

import bz2
import gzip
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path

from daskdl.errors import DataError

# Far above what one radar file holds (a volume of all moments: 0.1 GB), and still no burden. A file
# that unpacks to more is no radar file, or made to fill the disk.
MOST_BYTES = 1 << 30
PIECE = 1 << 20
# Advice for a damaged file of a folder; one behind an address lies so there (ingest/report.py).
WHOLE = "put a whole copy in its place, or leave it out"


def _opener(path: Path) -> gzip.GzipFile | bz2.BZ2File | BufferedReader:
    with path.open("rb") as file:
        magic = file.read(3)
    if magic[:2] == b"\x1f\x8b":
        return gzip.open(path, "rb")
    if magic == b"BZh":
        return bz2.open(path, "rb")
    return path.open("rb")


def is_zarr(path: Path) -> bool:
    """Return whether a folder is a zarr store (format 2 or 3)."""
    return any((path / name).is_file() for name in ("zarr.json", ".zgroup", ".zmetadata"))


def read_bytes(path: Path, count: int = -1) -> bytes:
    """Return the first ``count`` bytes of a file (all by default), unpacked.

    Raises DataError when it cannot be read, breaks off, or has over ``MOST_BYTES``.
    """
    return b"".join(_pieces(path, count))


@contextmanager
def plain_file(path: Path) -> Iterator[Path]:
    """Yield the path of the unpacked file: ``path`` itself, or a temporary copy if it is packed.

    Folders (zarr stores) are not changed. Raises DataError as :func:`read_bytes`.
    """
    if path.is_dir():
        yield path
        return
    with path.open("rb") as file:
        magic = file.read(3)
    if not (magic[:2] == b"\x1f\x8b" or magic == b"BZh"):
        if (size := path.stat().st_size) > MOST_BYTES:
            raise _too_large(path, size)
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="nowcast-") as folder:
        unpacked = Path(folder) / path.stem
        with unpacked.open("wb") as file:
            for piece in _pieces(path):
                file.write(piece)
        yield unpacked


@contextmanager
def joined_file(paths: Sequence[Path]) -> Iterator[Path]:
    """Yield the path of a temporary file with the bytes of several files in order."""
    with tempfile.TemporaryDirectory(prefix="nowcast-") as folder:
        joined = Path(folder) / paths[0].name
        with joined.open("wb") as file:
            for path in paths:
                file.write(read_bytes(path))
        yield joined


def _pieces(path: Path, count: int = -1) -> Iterator[bytes]:
    """Yield the unpacked bytes of a file piece by piece."""
    remaining = MOST_BYTES if count < 0 else count
    try:
        with _opener(path) as file:
            while remaining and (piece := file.read(min(remaining, PIECE))):
                remaining -= len(piece)
                yield piece
            if count < 0 and not remaining and file.read(1):
                raise _too_large(path, MOST_BYTES)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path}: cannot be read to its end ({error}); {WHOLE}") from error


def _too_large(path: Path, size: int) -> DataError:
    return DataError(
        f"{path}: expected a radar file of at most {MOST_BYTES >> 20} MB unpacked, found "
        f"{size >> 20} MB or more"
    )
