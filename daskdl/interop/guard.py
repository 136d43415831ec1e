"""Checks for readers: missing files, damage, and settings that a reader does not know."""

from __future__ import annotations

import re
import struct
import zipfile
import zlib
from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from daskdl.errors import DaskdlError, ModelFileError

#: Exceptions that our readers raise on a damaged file.
DAMAGE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
#: Exceptions that libraries raise on a damaged file, in addition.
LIBRARIES = (
    *DAMAGE, EOFError, MemoryError, OSError, RuntimeError, struct.error, zipfile.BadZipFile,
    zipfile.LargeZipFile, zlib.error,
)  # fmt: skip
#: First bytes of the text that git-lfs keeps in place of a large file.
_POINTER = b"version https://git-lfs"
#: First bytes of a web page or a JSON error; a vocabulary may begin with [PAD], safetensors with {.
_ANSWER = re.compile(rb"\s*(<!doctype html|<html|<\?xml|[{\[]\s*[\"{])", re.IGNORECASE)


@contextmanager
def reading(
    where: object, kind: str = "", error: type[DaskdlError] = ModelFileError,
    damage: tuple[type[BaseException], ...] = DAMAGE,
) -> Iterator[None]:  # fmt: skip
    """Turn an exception while a file is read into an ``error`` that names the file, ``where``.

    ``kind`` is the format, for the error.
    """
    try:
        yield
    except error:
        raise
    except DaskdlError as ours:
        raise error(f"{where}: {ours}") from ours
    except damage as theirs:
        whole, sentence = f"valid {kind}".rstrip(), " ".join(str(theirs).split())[:300]
        raise damaged(where, f"damaged or not {whole} ({sentence})", error) from theirs


def damaged(where: object, sentence: str, kind: type[DaskdlError] = ModelFileError) -> DaskdlError:
    """Return the error about a damaged file, with the advice for all of them."""
    return kind(f"{where}: {sentence}; copy or save it again")


def existing(path: str | Path, noun: str, kind: type[DaskdlError] = ModelFileError) -> Path:
    """Return the path of an existing file; ``noun`` names its kind in errors.

    Raises ``kind`` when there is no file, or when it is a pointer of git-lfs, a web page or a
    server's error message.
    """
    path = Path(path)
    if path.is_dir():
        raise kind(f"{path}: it is a folder, not a {noun}; give a file in it")
    if not path.is_file():
        raise kind(f"{path}: there is no such {noun}; check the path")
    with path.open("rb") as file:
        start = file.read(len(_POINTER))
    if start == _POINTER:
        raise kind(
            f"{path}: it is a pointer of git-lfs to the {noun}, not the file itself; "
            "git lfs pull fetches it"
        )
    if path.suffix not in (".json", ".xml") and _ANSWER.match(start):
        raise kind(
            f"{path}: it is a text that a server has sent, such as a web page or an error in "
            f"JSON, not the {noun} itself; read it, and fetch the file it names"
        )
    return path


def check_keys(
    where: str, settings: Mapping[str, Any], read: Collection[str], ignored: Collection[str] = ()
) -> None:
    """Refuse settings of a layer that the reader does not know: they could change the results.

    Known settings are those in ``read``, which its translator used, and those in ``ignored``, which
    change no result, such as initializers. A setting that is None does not count.
    """
    unknown = [
        name for name, value in settings.items()
        if value is not None and name not in read and name not in ignored
    ]  # fmt: skip
    if unknown:
        raise ModelFileError(
            f"{where}: {_listed(unknown)}: not known to this reader, and it may change the results"
            "; save the model without it, or as ONNX"
        )


def check_supported(
    where: str, noun: str, places: Iterable[tuple[str, str]], known: Container[str], advice: str
) -> None:
    """Refuse a file with layers, modules or operators outside a table, and name them.

    ``noun`` is the word for them; ``places`` has the name and place of each. The error names the
    last place of each name.
    """
    unknown = {name: place for name, place in places if name not in known}
    if unknown:
        listed = "; ".join(f"{name} ({place})" for name, place in sorted(unknown.items()))
        raise ModelFileError(f"{where}: {noun} that are not supported: {listed}; {advice}")


def _listed(names: Iterable[str]) -> str:
    names = [str(name)[:60] for name in names]
    return ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
