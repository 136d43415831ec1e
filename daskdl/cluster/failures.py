"""Failures: exceptions in tasks, on their way to the caller with where they happened."""

from __future__ import annotations

import pickle
import re
from collections.abc import Iterator
from contextlib import contextmanager

import cloudpickle

from daskdl.cluster.address import one_line
from daskdl.cluster.users_line import users_line
from daskdl.errors import ClusterError, TrainingError
from daskdl.version import __version__


class TaskError(Exception):
    """An exception in a task, on its way to the driver with where it happened."""

    def __init__(self, where: str, cause: BaseException, line: str = "") -> None:
        try:
            pickle.loads(cloudpickle.dumps(cause))
        except Exception:  # whatever a user's exception does when it is pickled
            cause = RuntimeError(f"{type(cause).__name__}: {cause}")
        super().__init__(where, cause, line)

    def for_caller(self) -> tuple[TrainingError, BaseException]:
        """Return the exception to raise, and its cause."""
        where, cause, line = self.args
        kind = "" if isinstance(cause, TrainingError) else f"{type(cause).__name__}: "
        return TrainingError(f"{where}: {kind}{cause}{line}"), cause


@contextmanager
def naming(where: str, what: str = "") -> Iterator[None]:
    """Say of an exception where it happened."""
    try:
        yield
    except Exception as error:
        raise TaskError(where + at_worker() + what, error, users_line(error)) from error


@contextmanager
def for_caller() -> Iterator[None]:
    """Raise a task's exception as its caller is to see it."""
    try:
        yield
    except TaskError as error:
        raised, cause = error.for_caller()
        raise raised from cause


@contextmanager
def daskdl_there(what: str) -> Iterator[None]:
    """Say of an import that has failed on a machine without daskdl what to do."""
    try:
        yield
    except Exception as error:
        if not lacks_daskdl(error):
            raise
        raise ClusterError(
            f"{what}: expected daskdl {__version__} on every machine of the cluster, as here, "
            f"found one that lacks it ({one_line(error)}); daskdl doctor --cluster says which, "
            "install it there"
        ) from error


def lacks_daskdl(error: BaseException) -> bool:
    """Return whether an error says that a worker or scheduler has no daskdl."""
    # Dask hands on what a plugin raises as an Exception of its repr.
    text = repr(error) if isinstance(error, ImportError) or type(error) is Exception else ""
    return re.search(r"ModuleNotFoundError\(.*\bdaskdl\b", text) is not None


def at_worker() -> str:
    """Return " at worker <address>" in a task of a cluster, nothing elsewhere."""
    from distributed import get_worker

    try:
        return f" at worker {get_worker().address}"
    except ValueError:  # there is none
        return ""
