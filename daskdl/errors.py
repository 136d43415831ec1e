"""Exceptions that name the thing, what was expected, what was found and what to do.

Each class carries the exit code with which a command line ends on it and inherits the builtin that
fits, so that callers may catch either. All of them pickle: they hold one sentence and nothing else.
"""

from __future__ import annotations

#: Environment variable with which scripts show the traceback of an error or of Ctrl-C, too.
TRACEBACK = "DASKDL_TRACEBACK"


class DaskdlError(Exception):
    """Base of every error raised on purpose; ``exit_code`` is what a command line ends with."""

    exit_code = 1


class ShapeError(DaskdlError, ValueError):
    """An array's shape or dtype does not fit the layer, loss or operation that was given it."""

    exit_code = 3


class SettingsError(DaskdlError, ValueError):
    """A setting or an argument is outside what it may be."""

    exit_code = 2


class DataError(DaskdlError, ValueError):
    """Input data (a file, a store, a record) is not what it has to be."""

    exit_code = 3


class ModelFileError(DataError):
    """A model file is damaged, of another model, or names a module that is not registered.

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
    """Training cannot go on: a loss that is not finite, or an exception inside a layer."""

    exit_code = 3


class PredictionError(DaskdlError, RuntimeError):
    """A model raised an exception of its own in a prediction; the message names the partition."""

    exit_code = 3


class ClusterError(DaskdlError, RuntimeError):
    """The cluster cannot be reached, or its workers were lost and did not come back in time."""

    exit_code = 4


class CheckpointError(DaskdlError, RuntimeError):
    """A checkpoint cannot be written or read."""

    exit_code = 5


class MissingExtraError(DaskdlError, ImportError):
    """An optional dependency is not installed; the message names the extra that brings it."""

    exit_code = 2
