"""Compilation with numba: without the GIL, with numpy's error model, once per kind of processor."""

from __future__ import annotations

import fcntl
import functools
import hashlib
import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import numba

from daskdl.compat.numba_compiler import KernelCache, SameEverywhere, SelfContained

logger = logging.getLogger(__name__)

#: Longest wait (s) for another process that compiles the same function: it may be stuck.
PATIENCE = 300.0


@contextmanager
def compile_lock(path: Path) -> Iterator[None]:
    """Hold a lock between processes on a file: its holder compiles, the others wait.

    Without it, workers that start together would all compile the same functions. Each function has
    a lock, next to its compiled code: so the lock holds for all machines that share the folder, and
    processes may compile different functions at the same time. The holder of a function's lock may
    wait for the lock of a function that it calls, never the reverse. A lock ends with its process.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("ab")
    except OSError:  # a read-only folder: better compile twice than never
        yield
        return
    with file:
        limit = time.monotonic() + PATIENCE
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > limit:
                    logger.warning("%s: waited %g s for another process", path, PATIENCE)
                    break
                time.sleep(0.02)
            except OSError:  # a file system without locks
                break
        yield


_logged: set[str] = set()


def _warn_once(message: str, detail: object) -> None:
    """Log a warning once per process."""
    if message not in _logged:
        _logged.add(message)
        logger.warning(message, detail)


@functools.cache
def _digest(path: str) -> str:
    """Return the digest of a source file; unlike its time, it is the same in a copied checkout."""
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def _sources(name: str, digests: dict[str, str]) -> dict[str, str]:
    """Add the digests of a module and of modules that it uses from its package or daskdl."""
    module = sys.modules[name]
    path, package = getattr(module, "__file__", None), name.partition(".")[0]
    if path is None or name in digests:
        return digests
    digests[name] = _digest(path)
    for value in list(vars(module).values()):
        # A name imported from a module, or a module whose functions are used by attribute.
        of = "__name__" if isinstance(value, ModuleType) else "__module__"
        used = getattr(value, of, None) or ""
        if used.startswith((f"{package}.", "daskdl.")) and used in sys.modules:
            _sources(used, digests)
    return digests


def _stamp(name: str) -> list[tuple[str, str]]:
    """Return the modules that are compiled into a module's kernels, with digests of their sources.

    numba checks only a function's own file; it would keep outdated code that it inlined.
    """
    return sorted(_sources(name, {}).items())


def _compiler(
    pipeline: type = SelfContained, **options: Any
) -> Callable[[Callable[..., Any]], Any]:
    def decorate(function: Callable[..., Any]) -> Any:
        # Nobody calls kernels by a C pointer: without that wrapper they compile in less time.
        compiled = numba.njit(
            nogil=True,
            error_model="numpy",
            no_cfunc_wrapper=True,
            pipeline_class=pipeline,
            **options,
        )
        dispatcher = compiled(function)
        try:
            cache = KernelCache(function, lambda: _stamp(function.__module__))
        except RuntimeError as error:  # no writable folder
            _warn_once("each process compiles kernels anew; set NUMBA_CACHE_DIR (%s)", error)
            return dispatcher
        load, compile_version, scopes = cache.load_overload, dispatcher.compile, threading.local()

        def load_or_wait(signature: Any, context: Any) -> Any:
            compiled = load(signature, context)
            if compiled is None:
                scopes.latest.enter_context(compile_lock(cache.lock))
                compiled = load(signature, context)  # another process may have compiled meanwhile
            if compiled is None:
                _warn_once(
                    "compiling kernels, which is done once for this kind of processor and takes up "
                    "to a minute (kept in %s)",
                    cache.cache_path,
                )
            return compiled

        def compile_locked(signature: Any) -> Any:
            with ExitStack() as scope:
                before, scopes.latest = getattr(scopes, "latest", None), scope
                try:
                    return compile_version(signature)
                finally:
                    scopes.latest = before

        setattr(cache, "load_overload", load_or_wait)  # noqa: B010
        dispatcher._cache = cache
        dispatcher.compile = compile_locked
        return dispatcher

    return decorate


#: Decorator of exact kernels.
jit: Any = _compiler()

#: Decorator of kernels whose sums may be reordered. LLVM chooses the order, so all processors run
#: code that was compiled for the same one. NaN and infinity are kept (LLVM's flags nnan and ninf
#: are left out, at no cost in speed): a loss that diverged has to show.
fastjit: Any = _compiler(SameEverywhere, fastmath={"nsz", "contract", "reassoc"})

#: Decorator of kernels whose roundings matter, such as an exponential's: a product and a sum may
#: become one instruction, but nothing is reordered.
fusedjit: Any = _compiler(fastmath={"contract"})
