"""The files behind the sources that a user names: files, folders and patterns."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from daskdl.errors import DataError
from nowcast.radar.plainfile import is_zarr

# In a folder, a file of these endings that cannot be read is a failure; a README beside is not.
RADAR_ENDINGS = {
    ".h5", ".hdf", ".hdf5", ".nc", ".nc4", ".cdf", ".vol", ".pgm", ".raw", ".ar2v", ".gz", ".bz2",
    ".grib2", ".grb2", ".tif", ".tiff", ".uf"
}  # fmt: skip


@dataclass
class Sources:
    """Files to look into.

    Parameters
    ----------
    named : list of Path
        Named by the user, or matched by a pattern: each has to be a radar file.
    found : list of Path
        Met in folders: those that are no radar files are passed over unless their ending says so.
    """

    named: list[Path] = field(default_factory=list)
    found: list[Path] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.named) + len(self.found)

    def size(self) -> int:
        """Return the number of bytes of all files."""
        return sum(path.stat().st_size for path in [*self.named, *self.found])


def find_files(sources: Iterable[str | os.PathLike[str]]) -> Sources:
    """Return the files of sources, each once, sorted within each folder or pattern.

    A zarr store is one source. Other folders are searched with all that is below them, but not into
    hidden ones nor into zarr stores, of which one may be what an ingest writes.

    Raises
    ------
    DataError
        When a source does not exist or a pattern matches nothing, or when there is no file at all.
    """
    result = Sources()
    seen: set[str] = set()
    for source in sources:
        path = Path(source)
        if not str(source):  # an unset variable of a script would be the current folder
            raise DataError(
                "sources: expected a file, a folder or a pattern, found an empty "
                "name; check the variable or the quotes in the command"
            )
        if path.is_dir() and is_zarr(path):
            _add(result.named, [path], seen)
        elif path.is_dir():
            matches = sorted(_walk(path))
            _add(result.found, matches, seen)
        elif path.is_file():
            _add(result.named, [path], seen)
        elif glob.has_magic(str(source)):
            matches = sorted(Path(match) for match in glob.glob(str(source), recursive=True))
            if not matches:
                raise DataError(f"{source}: the pattern matches no file; check it with ls")
            for match in matches:
                if match.is_dir() and not is_zarr(match):
                    _add(result.found, sorted(_walk(match)), seen)
                else:
                    _add(result.named, [match], seen)
        else:
            raise DataError(
                f"{source}: expected a file, a folder or a pattern, found nothing there; "
                "check the path from the folder where the command runs"
            )
    return result


def _walk(folder: Path) -> Iterable[Path]:
    for root, folders, names in os.walk(folder):
        folders[:] = [
            name for name in folders if not name.startswith(".") and not is_zarr(Path(root, name))
        ]
        yield from (Path(root, name) for name in names if not name.startswith("."))


def _add(files: list[Path], matches: Iterable[Path], seen: set[str]) -> None:
    for path in matches:
        real = os.path.realpath(path)
        if real not in seen:
            seen.add(real)
            files.append(path)
