"""Failures: exceptions in tasks, told to the caller with their place."""

from __future__ import annotations

import linecache
import pickle
import re
import site
import sys
import sysconfig
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import CodeType

import cloudpickle

from daskdl.cluster.starting.address import one_line
from daskdl.errors import ClusterError, TrainingError
from daskdl.version import __version__


def users_line(error: BaseException) -> str:
    """Return the innermost line of user code, as in `` (net.py, line 7, in forward: ...)``.

    It is "" if the exception's traceback has only frames of libraries.
    """
    described = ""
    for frame, number in traceback.walk_tb(error.__traceback__):
        code = frame.f_code
        if not _is_librarys(code):
            line = linecache.getline(code.co_filename, number, frame.f_globals).strip()
            where = f"{Path(code.co_filename).name}, line {number}, in {code.co_name}"
            described = f" ({where}: {line})" if line else f" ({where})"
    return described


@cache
def _roots() -> tuple[str, ...]:
    package = str(Path(__file__).parent.parent)
    paths = sysconfig.get_paths()
    libraries = (paths[kind] for kind in ("stdlib", "purelib", "platlib"))
    folders = [package, *libraries, *site.getsitepackages()]
    return tuple({str(Path(path)) + "/" for path in folders} | {sys.prefix + "/lib/"})


def _is_librarys(code: CodeType) -> bool:
    name = code.co_filename
    notebook = "ipykernel" in name  # the code of a cell is in a temporary file
    return not notebook and (name.startswith("<frozen") or name.startswith(_roots()))


class TaskError(Exception):
    """An exception in a task, sent to the driver with the place where it happened."""

    def __init__(self, where: str, cause: BaseException, line: str = "") -> None:
        try:
            pickle.loads(cloudpickle.dumps(cause))
        except Exception:  # pickling a user's exception may raise anything
            cause = RuntimeError(f"{type(cause).__name__}: {cause}")
        super().__init__(where, cause, line)

    def for_caller(self) -> tuple[TrainingError, BaseException]:
        """Return the exception to raise, and its cause."""
        where, cause, line = self.args
        kind = "" if isinstance(cause, TrainingError) else f"{type(cause).__name__}: "
        return TrainingError(f"{where}: {kind}{cause}{line}"), cause


@contextmanager
def naming(where: str, detail: str = "") -> Iterator[None]:
    """Add the place to an exception, as a :class:`TaskError`."""
    try:
        yield
    except Exception as error:
        raise TaskError(where + at_worker() + detail, error, users_line(error)) from error


@contextmanager
def for_caller() -> Iterator[None]:
    """Raise a task's exception as a TrainingError for the caller."""
    try:
        yield
    except TaskError as error:
        raised, cause = error.for_caller()
        raise raised from cause


@contextmanager
def daskdl_there(purpose: str) -> Iterator[None]:
    """Turn a failed import on a machine without daskdl into a ClusterError with advice."""
    try:
        yield
    except Exception as error:
        if not lacks_daskdl(error):
            raise
        raise ClusterError(
            f"{purpose}: expected daskdl {__version__} on every machine of the cluster, as here, "
            f"found one that lacks it ({one_line(error)}); daskdl doctor --cluster says which, "
            "install it there"
        ) from error


def lacks_daskdl(error: BaseException) -> bool:
    """Return whether an error shows that a worker or scheduler has no daskdl."""
    # Dask wraps an exception of a plugin as an Exception with its repr.
    text = repr(error) if isinstance(error, ImportError) or type(error) is Exception else ""
    return re.search(r"ModuleNotFoundError\(.*\bdaskdl\b", text) is not None


def at_worker() -> str:
    """Return " at worker <address>" in a task of a cluster, otherwise ""."""
    from distributed import get_worker

    try:
        return f" at worker {get_worker().address}"
    except ValueError:  # not in a task
        return ""
