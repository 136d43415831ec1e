"""Failures: exceptions in tasks, told to the caller with their place, and attempts after losses."""

from __future__ import annotations

import asyncio
import linecache
import logging
import pickle
import re
import site
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING, TypeVar

import cloudpickle

from daskdl.cluster.settings import setting
from daskdl.cluster.starting.address import one_line
from daskdl.errors import ClusterError, TrainingError, type_and_line
from daskdl.version import __version__

if TYPE_CHECKING:
    from daskdl.cluster.client import Cluster

logger = logging.getLogger(__name__)

T = TypeVar("T")


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


@cache
def lost() -> tuple[type[BaseException], ...]:
    """Return the exceptions that mean that data were lost with their workers.

    This is a function, as the import of distributed is slow, and a fit in one process needs none.
    """
    from distributed import KilledWorker

    # Dask's FuturesCancelledError is one of the first, its CommClosedError one of the last.
    return CancelledError, asyncio.CancelledError, KilledWorker, TimeoutError, OSError


def until_done(
    cluster: Cluster,
    purpose: str,
    attempt: Callable[[], T],
    after_loss: Callable[[], None],
    functions: Sequence[str] = (),
) -> T:
    """Return the result of the first successful attempt of up to ``daskdl.attempts``.

    Before another attempt ``after_loss`` releases data that may be lost. ``functions`` are the
    names of user functions in the tasks, which may have ended the processes. Raises TrainingError
    for an exception in a task, with its place, and ClusterError when the scheduler is gone, or each
    attempt lost data.
    """
    tries = int(setting("attempts"))
    for remaining in reversed(range(tries)):
        try:
            with for_caller(), daskdl_there(purpose):
                return attempt()
        except lost() as error:
            cluster.check_scheduler(purpose, error)
            if not remaining:
                losses = cluster.losses()
                called = f"; the tasks call {', '.join(functions)}" if functions else ""
                raise ClusterError(
                    f"{purpose}: tried {tries} times, each time data were lost with their "
                    f"workers, at last by {type_and_line(error)}{losses}"
                    f"{called}; see the workers' logs for what ends their processes"
                ) from error
            logger.warning(
                "%s: starting again, since %s%s", purpose, type_and_line(error), cluster.losses()
            )
            after_loss()
    raise AssertionError("the last attempt has returned or raised")
