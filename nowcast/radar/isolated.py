"""Read files in a child process: a damaged file can crash or hang the reading library.

The C libraries behind HDF5, netCDF and GRIB do both on some damaged files, without an exception. So
a worker keeps one child process for its readers; calls and results pass through pipes. If the child
dies over a file, that file is damaged, and the next call starts another child.
"""

from __future__ import annotations

import atexit
import os
import pickle
import struct
import subprocess
import sys
from collections.abc import Callable
from threading import Lock
from typing import Any

from daskdl.errors import DataError
from nowcast.radar.plainfile import WHOLE

# Computing time for one file: the largest take some seconds. Waiting for a disk does not count.
SECONDS = 60
# Address space of the process; a damaged size is a MemoryError and not a machine without memory.
BYTES = 8 << 30

LENGTH = struct.Struct("<Q")


class _Process:
    """The process that reads for this one, started at the first call."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.child: subprocess.Popen[bytes] | None = None

    def call(self, request: bytes) -> tuple[bool, Any]:
        """Return whether a call succeeded and its result or exception; raise EOFError if it died.

        Calls are made one at a time, since the libraries need that.
        """
        with self.lock:
            child = self.child or self._start()
            assert child.stdin is not None
            assert child.stdout is not None
            try:
                child.stdin.write(LENGTH.pack(len(request)) + request)
                child.stdin.flush()
                return pickle.load(child.stdout)
            except (EOFError, OSError, pickle.UnpicklingError):
                self.close()
                raise EOFError from None
            except BaseException:
                # Interrupted, or an answer that is none: the next call must not find its rest.
                self.close()
                raise

    def _start(self) -> subprocess.Popen[bytes]:
        folders = os.pathsep.join(folder or os.getcwd() for folder in sys.path)
        self.child = subprocess.Popen(
            [sys.executable, "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": folders},
        )
        return self.child

    def close(self) -> None:
        """End the process."""
        child, self.child = self.child, None
        if child is not None:
            child.kill()
            child.communicate()


# By process: one that was forked must not share the pipes of the one that it comes from.
_processes: dict[int, _Process] = {}
_starting = Lock()


def call(name: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function of :mod:`nowcast.radar` in a child process; return its result for a file.

    The function must be importable by its name, and its arguments must pickle; its exceptions are
    raised here. Raises DataError about the file or files ``name`` if the process died or took
    longer than ``SECONDS``.
    """
    with _starting:
        process = _processes.get(os.getpid())
        if process is None:
            process = _processes[os.getpid()] = _Process()
            atexit.register(process.close)
    request = pickle.dumps((SECONDS, function, arguments))
    try:
        succeeded, result = process.call(request)
    except EOFError:
        raise DataError(
            f"{name}: damaged file: the library that reads it crashed, or did not end within "
            f"{SECONDS} s of computing; {WHOLE}"
        ) from None
    if not succeeded:
        raise result
    return result


def _serve() -> None:
    """Answer calls until the pipe closes."""
    import resource
    import signal
    import warnings

    # What libraries print is not to get between the answers, and no news: an error is an exception.
    answers = os.fdopen(os.dup(1), "wb")
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, resource.RLIM_INFINITY))
    # Ctrl-C at a terminal goes to all processes; this one ends when its pipe does.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        size = sys.stdin.buffer.read(LENGTH.size)
        if len(size) < LENGTH.size:
            return
        request = sys.stdin.buffer.read(LENGTH.unpack(size)[0])
        try:
            seconds, function, arguments = pickle.loads(request)
            # SIGPROF ends the process whatever a library is doing.
            signal.setitimer(signal.ITIMER_PROF, seconds)
            answer = (True, function(*arguments))
        except Exception as error:
            answer = (False, error)
        signal.setitimer(signal.ITIMER_PROF, 0)
        pickle.dump(answer, answers, protocol=pickle.HIGHEST_PROTOCOL)
        answers.flush()


if __name__ == "__main__":
    _serve()
