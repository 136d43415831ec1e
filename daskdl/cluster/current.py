"""The current Dask client, and methods that run in a thread while an event loop continues."""

from __future__ import annotations

import asyncio
import functools
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar, copy_context
from typing import Any, ParamSpec, TypeVar

from daskdl.cluster.lasting import Connection
from daskdl.errors import SettingsError

#: Whether the caller asked for no client, even if there is one.
_without: ContextVar[bool] = ContextVar("daskdl_without_client", default=False)


def is_future(value: Any) -> bool:
    """Return whether a value is a Future of a Dask cluster."""
    if "distributed" not in sys.modules:
        return False
    from distributed import Future

    return isinstance(value, Future)


def current_client(asynchronous: bool = False) -> Any:
    """Return the current Dask client, or None; an asynchronous one only if ``asynchronous``.

    Inside a task it is None: work that a task submits would wait for the task's own thread. A task
    that secedes from its thread may pass a client as ``client=``.
    """
    if (
        _without.get() or "distributed" not in sys.modules
    ):  # then there is no client, and the import is slow
        return None
    from distributed import default_client, get_worker

    with suppress(ValueError):
        get_worker()
        return None
    try:
        client = default_client()
    except ValueError:
        return None
    return None if client.asynchronous and not asynchronous else client


@contextmanager
def using(client: Any) -> Iterator[None]:
    """Make a client the current one inside; False means no client, None changes nothing.

    Raises SettingsError when it is no client, is closed, or is asynchronous.
    """
    if client is None:
        yield
    elif client is False:
        token = _without.set(True)
        try:
            yield
        finally:
            _without.reset(token)
    else:
        with check_client(client).as_current():
            yield


def check_client(client: Any, asynchronous: bool = False) -> Any:
    """Return a client after a check that it is connected.

    Raises SettingsError otherwise, and for an asynchronous client unless ``asynchronous``.
    """
    from distributed import Client

    if isinstance(client, Connection):
        client = client.client
    if not isinstance(client, Client):
        raise SettingsError(
            f"client: expected a distributed.Client, found {client!r}; make one of an address by "
            "daskdl.connect"
        )
    if client.status in ("closing", "closed"):
        raise SettingsError(
            f"client: expected one that is connected, found {client!r}, which has been closed; "
            "make a new one, or call this before connect's is closed or its with block ends"
        )
    if client.scheduler is None:
        raise SettingsError(
            f"client: expected one that is connected, found {client!r}; await it first"
        )
    if client.asynchronous and not asynchronous:
        raise SettingsError(
            f"client: expected a synchronous one, found {client!r}; give Client(address), or call "
            "this in a thread by asyncio.to_thread"
        )
    return client


P = ParamSpec("P")
R = TypeVar("R")

_stop: ContextVar[threading.Event | None] = ContextVar("daskdl_stop", default=None)


def stop_if_asked() -> None:
    """Raise a KeyboardInterrupt if the task that awaits this work was cancelled."""
    asked = _stop.get()
    if asked is not None and asked.is_set():
        raise KeyboardInterrupt


def awaitable(method: Callable[P, R]) -> Callable[P, R]:
    """Make a method with a ``client`` return an awaitable when that client is asynchronous.

    By default it gets the current client, if there is one; with False it gets none.
    """

    @functools.wraps(method)
    def call(*arguments: Any, client: Any = None, **options: Any) -> Any:
        if client is False:
            return method(*arguments, client=None, **options)  # type: ignore[arg-type]
        client = current_client(asynchronous=True) if client is None else client
        client = None if client is None else check_client(client, asynchronous=True)
        if client is not None and client.asynchronous:
            return in_thread(method, *arguments, client=client, **options)
        return method(*arguments, client=client, **options)

    return call


async def in_thread(method: Callable[..., R], *arguments: Any, client: Any, **options: Any) -> R:
    """Call a method in a thread, with a synchronous client of the same scheduler, and await it.

    Neither computations nor messages of the scheduler block the event loop. If the awaiting task
    is cancelled, the work ends at its next :func:`stop_if_asked`; only then this raises the
    CancelledError, so that no work is left running.
    """
    other = client is not None and client.asynchronous  # it cannot be used in another thread

    def work() -> R:
        if not other:
            return method(*arguments, client=client, **options)
        from distributed import Client

        address, security = client.scheduler.address, client.security
        with Client(address, security=security, set_as_default=False) as synchronous:
            return method(*arguments, client=synchronous, **options)

    asked, context = threading.Event(), copy_context()
    context.run(_stop.set, asked)
    # Not a Task: a KeyboardInterrupt would escape from it into the loop.
    working = asyncio.get_running_loop().run_in_executor(None, context.run, work)
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        asked.set()
        await asyncio.wait([working])
        if not working.cancelled():
            working.exception()  # retrieve the KeyboardInterrupt
        raise
