"""The guard around foreign files: damage is one sentence, and our own mistakes are named as such.

A fault of a file shows as any exception of any library. Its type does not matter, but its place
does: raised inside a library, or by Python's checks of values, it is the file's fault. A wrong
type, name or attribute in a line of this program is our mistake.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from traceback import walk_tb

from dask.utils import SerializableLock

from daskdl.errors import DaskdlError, DataError, MissingExtraError, SettingsError
from nowcast.radar.plainfile import WHOLE, plain_file

# The HDF5 and netCDF C libraries may be entered by one thread at a time.
LIBRARY_LOCK = SerializableLock("nowcast-radar-files")

# Raised by a line of ours, these tell of a mistake in it; readers check what they take from files.
MISTAKES = (TypeError, AttributeError, NameError, AssertionError, ImportError, NotImplementedError)

OURS = __name__.partition(".")[0]


class ReaderError(DaskdlError, RuntimeError):
    """A reader of this program failed by a mistake of its own; the file may be sound."""

    exit_code = 1


@contextmanager
def guarded(name: str, kind: str = "radar") -> Iterator[None]:
    """Turn any exception inside into one sentence that names a file, or files, of a format.

    Raises DataError if the file is damaged or of another kind, ReaderError if the mistake is this
    program's; a MissingExtraError passes.
    """
    try:
        yield
    except (MissingExtraError, ReaderError):
        raise
    except DataError as error:
        sentence = str(error) if str(error).startswith(name) else f"{name}: {error}"
        advice = "" if "; " in sentence else f"; {WHOLE}"
        raise DataError(sentence + advice) from error
    except Exception as error:
        raise explained(error, name, kind) from error


@contextmanager
def foreign_file(path: Path, kind: str) -> Iterator[Path]:
    """Yield the path of an unpacked file; reading is guarded, and one at a time."""
    with guarded(str(path), kind), LIBRARY_LOCK, plain_file(path) as unpacked:
        yield unpacked


def explained(error: Exception, name: str, kind: str) -> DaskdlError:
    """Return the error for an exception while reading a file: the file's fault, or ours."""
    lines = str(error).strip().splitlines()
    reason = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
    place = _place_in_our_code(error)
    if place and isinstance(error, MISTAKES):
        return ReaderError(
            f"{name}: nowcast failed by a mistake of its own ({reason}, in {place}); the file may "
            "be sound: please report it with this line"
        )
    if isinstance(error, SettingsError):  # a site or grid that a file gave and that cannot be
        return DataError(f"{name}: damaged {kind} file ({error})")
    return DataError(f"{name}: damaged or truncated {kind} file ({reason})")


def _place_in_our_code(error: Exception) -> str:
    """Return "module, line N" of the line that raised an error, or "" if it is a library's."""
    frame, line = list(walk_tb(error.__traceback__))[-1]
    module = str(frame.f_globals.get("__name__", ""))
    return f"{module}, line {line}" if module.partition(".")[0] == OURS else ""
