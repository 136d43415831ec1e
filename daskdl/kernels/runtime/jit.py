"""How this package compiles with numba: no GIL, numpy's error model, once per machine."""

from __future__ import annotations

import fcntl
import getpass
import hashlib
import logging
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import numba

logger = logging.getLogger(__name__)

#: Seconds after which a process compiles for itself, since whoever compiles may be stuck.
PATIENCE = 300.0


@contextmanager
def turn(path: Path) -> Iterator[None]:
    """Hold a lock between the processes of a machine: who has it compiles, the others wait.

    Without it, workers that start together would all compile the same, and numba's index of a
    function's versions, which is read, changed and written again, could mix up two of them. There
    is a lock for each function, so that processes may compile different ones at a time; who
    compiles a function may wait for one that it calls, never the other way round.

    Parameters
    ----------
    path : path
        Of the file that is locked; the lock goes with the process that holds it.
    """
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        file = path.open("ab")
    except OSError:  # no such folder, or another user's: better twice than never
        yield
        return
    with file:
        limit = time.monotonic() + PATIENCE
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                if time.monotonic() > limit:
                    logger.warning("%s: waited %g s for another process", path, PATIENCE)
                    break
                time.sleep(0.02)
        yield


_told = False


def _tell(folder: str) -> None:
    """Say, once in a process, that it compiles."""
    global _told
    if not _told:
        _told = True
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


_LOCKS = Path(tempfile.gettempdir()) / f"daskdl-compiles-{_user()}"


def _sources(name: str, found: dict[str, os.stat_result]) -> dict[str, os.stat_result]:
    """Add the files of a module, and of those whose functions it uses, of its package or this."""
    module = sys.modules[name]
    path, package = getattr(module, "__file__", None), name.rpartition(".")[0]
    if path is None or path in found:
        return found
    found[path] = os.stat(path)
    for value in list(vars(module).values()):
        # What is taken from a module, or a module from which functions are taken by name.
        of = "__name__" if isinstance(value, ModuleType) else "__module__"
        used = getattr(value, of, None) or ""
        if used.startswith((f"{package or name}.", f"{__package__}.")) and used in sys.modules:
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
        cache, compile_version = dispatcher._cache, dispatcher.compile
        load, index = cache.load_overload, cache._cache_file._index_path
        lock = _LOCKS / hashlib.sha1(index.encode(), usedforsecurity=False).hexdigest()
        scopes = threading.local()
        stamped = False

        def load_or_take_turn(signature: Any, context: Any) -> Any:
            nonlocal stamped
            if not stamped:  # at the first call, when all modules are there
                cache._cache_file._source_stamp = _stamp(function.__module__)
                stamped = True
            found = load(signature, context)
            if found is None:
                scopes.latest.enter_context(turn(lock))
                found = load(signature, context)  # another process may have compiled meanwhile
            if found is None:
                _tell(cache.cache_path)
            return found

        def compile_in_turn(signature: Any) -> Any:
            with ExitStack() as scope:
                before, scopes.latest = getattr(scopes, "latest", None), scope
                try:
                    return compile_version(signature)
                finally:
                    scopes.latest = before

        cache.load_overload = load_or_take_turn
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
