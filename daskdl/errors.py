"""Exceptions whose messages name the object, what was expected, what was found and what to do.

Each class has the exit code of a command line and inherits the matching builtin exception, so that
callers may catch either. All of them pickle: they hold one sentence only.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

#: Environment variable that makes scripts show the traceback of an error or of Ctrl-C.
TRACEBACK = "DASKDL_TRACEBACK"


class DaskdlError(Exception):
    """Base of all errors raised on purpose; ``exit_code`` is the exit code of a command line."""

    exit_code = 1


class ShapeError(DaskdlError, ValueError):
    """An array's shape or dtype does not match the layer, loss or operation."""

    exit_code = 3


class SettingsError(DaskdlError, ValueError):
    """A setting or an argument has a value that is not allowed."""

    exit_code = 2


class DataError(DaskdlError, ValueError):
    """Input data (a file, a store, a record) is invalid."""

    exit_code = 3


class ModelFileError(DataError):
    """A model file is damaged, of another model, or names an unknown module.

    Examples
    --------
    >>> import daskdl
    >>> with open("notes.safetensors", "wb") as file:
    ...     _ = file.write(b"no model")
    >>> try:
    ...     daskdl.load("notes.safetensors")
    ... except ModelFileError as error:
    ...     print(error)
    notes.safetensors: it is a text; give the model file itself (docs/interop.md)
    """


class TrainingError(DaskdlError, RuntimeError):
    """Training cannot continue: a loss is not finite, or a layer raised an exception."""

    exit_code = 3


class PredictionError(DaskdlError, RuntimeError):
    """A model raised an exception in a prediction; the message names the partition."""

    exit_code = 3


class ClusterError(DaskdlError, RuntimeError):
    """The cluster cannot be reached, or its workers were lost and did not come back in time."""

    exit_code = 4


class CheckpointError(DaskdlError, RuntimeError):
    """A checkpoint cannot be written or read."""

    exit_code = 5


class MissingExtraError(DaskdlError, ImportError):
    """An optional dependency is not installed; the message names the extra that installs it."""

    exit_code = 2


@contextmanager
def needed(sentence: str) -> Iterator[None]:
    """Raise a MissingExtraError if an import inside fails; ``{error}`` stands for its reason."""
    try:
        yield
    except ImportError as error:
        raise MissingExtraError(sentence.replace("{error}", str(error))) from error


def type_and_line(error: BaseException) -> str:
    """Return an exception's type and the first line of its text."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
