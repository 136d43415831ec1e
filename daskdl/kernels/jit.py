"""How this package compiles with numba: no GIL, numpy's error model, once per machine."""

from __future__ import annotations

import fcntl
import getpass
import logging
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numba

logger = logging.getLogger(__name__)

#: Seconds after which a process compiles for itself, since whoever compiles may be stuck.
PATIENCE = 300.0


class Turn:
    """A lock between the processes of a machine: whoever has it compiles, the others wait.

    Without it, workers that start together would all compile the same, and numba's index of a
    function's versions, which is read, changed and written again, could mix up two of them.

    Parameters
    ----------
    path : path
        Of the file that is locked; the lock goes with the process that holds it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: IO[bytes] | None = None
        self._holders = 0  # threads of this process
        self._lock = threading.Lock()
        self._here = threading.local()
        self._told = False

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Give back, at the end of the outermost scope of a thread, what was taken in it."""
        depth = getattr(self._here, "depth", 0)
        self._here.depth = depth + 1
        try:
            yield
        finally:
            self._here.depth = depth
            if not depth and getattr(self._here, "taken", False):
                self._give_back()

    def take(self) -> None:
        """Wait for one's turn to compile; it lasts until the end of the thread's scope."""
        if getattr(self._here, "taken", False):
            return
        with self._lock:
            if self._file is None:
                self._file = self._locked()
            self._holders += 1
            self._here.taken = True

    def _give_back(self) -> None:
        with self._lock:
            self._here.taken = False
            self._holders -= 1
            if not self._holders and self._file is not None:
                self._file.close()  # and with it the lock
                self._file = None

    def _locked(self) -> IO[bytes] | None:
        try:
            file = self.path.open("ab")
        except OSError:  # no such folder, or another user's file: better twice than never
            return None
        limit = time.monotonic() + PATIENCE
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return file
            except OSError:
                if time.monotonic() > limit:
                    logger.warning("%s: waited %g s for another process", self.path, PATIENCE)
                    return file
                time.sleep(0.05)

    def tell(self, folder: str) -> None:
        """Say, once in a process, that it compiles."""
        if not self._told:
            self._told = True
            logger.warning(
                "compiling kernels, which is done once on this machine and takes up to a minute "
                "(kept in %s)",
                folder,
            )


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container without a name for its user
        return "user"


_turn = Turn(Path(tempfile.gettempdir()) / f"daskdl-compiles-{_user()}.lock")


def _sources(name: str, found: dict[str, os.stat_result]) -> dict[str, os.stat_result]:
    """Add the files of a module, and of those whose functions it uses, of the same package."""
    module = sys.modules[name]
    path, package = getattr(module, "__file__", None), name.rpartition(".")[0]
    if path is None or path in found:
        return found
    found[path] = os.stat(path)
    for value in list(vars(module).values()):
        used = getattr(value, "__module__", None) or ""
        if package and used.startswith(f"{package}.") and used in sys.modules:
            _sources(used, found)
    return found


def _stamp(name: str) -> list[tuple[str, float, int]]:
    """Return what changes with any source that is compiled into a module's kernels.

    numba looks at a function's own file only, and would go on with what it once inlined.
    """
    files = _sources(name, {})
    return [(path, files[path].st_mtime, files[path].st_size) for path in sorted(files)]


def _compiler(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    def decorate(function: Callable[..., Any]) -> Any:
        dispatcher = numba.njit(nogil=True, error_model="numpy", cache=True, **options)(function)
        compile_version, load = dispatcher.compile, dispatcher._cache.load_overload
        stamped = False

        def load_or_take_turn(signature: Any, context: Any) -> Any:
            nonlocal stamped
            if not stamped:  # at the first call, when all modules are there
                dispatcher._cache._cache_file._source_stamp = _stamp(function.__module__)
                stamped = True
            found = load(signature, context)
            if found is None:
                _turn.take()
                found = load(signature, context)  # another process may have compiled meanwhile
            if found is None:
                _turn.tell(dispatcher._cache.cache_path)
            return found

        def compile_in_turn(signature: Any) -> Any:
            with _turn.scope():
                return compile_version(signature)

        dispatcher._cache.load_overload = load_or_take_turn
        dispatcher.compile = compile_in_turn
        return dispatcher

    return decorate


#: Decorator of exact kernels.
jit: Any = _compiler()

#: Decorator of kernels whose sums may be reordered. NaN and infinity stay what they are (LLVM's
#: flags nnan and ninf are left out, at no cost in speed): a loss that diverged has to show.
fastjit: Any = _compiler(fastmath={"nsz", "arcp", "contract", "afn", "reassoc"})

#: Decorator of kernels whose roundings matter, as those of an exponential do: a product and a sum
#: may become one instruction, but nothing is reordered.
fusedjit: Any = _compiler(fastmath={"contract"})
