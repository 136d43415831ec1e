"""The current Dask client, and calls that are awaited while an event loop goes on."""

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

#: Whether no client was asked for, whichever there is.
_without: ContextVar[bool] = ContextVar("daskdl_without_client", default=False)


def is_future(value: Any) -> bool:
    """Return whether something is what a cluster computes or has computed."""
    if "distributed" not in sys.modules:
        return False
    from distributed import Future

    return isinstance(value, Future)


def current_client(asynchronous: bool = False) -> Any:
    """Return the current Dask client, or None; ``asynchronous`` ones only if they are asked for.

    There is none inside a task: what it hands to the cluster would wait for the thread that it has.
    A task that wants one, and gives its thread back meanwhile, gives it as ``client=``.
    """
    if (
        _without.get() or "distributed" not in sys.modules
    ):  # then nobody has made one, and the import is slow
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
    """Make a client the current one for a while; with False there is none, None changes nothing.

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
    """Return a client that is connected.

    Raises SettingsError for anything else, and for an asynchronous client unless it is asked for.
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
    """Raise a KeyboardInterrupt if whoever awaited this work has been cancelled."""
    asked = _stop.get()
    if asked is not None and asked.is_set():
        raise KeyboardInterrupt


def awaitable(method: Callable[P, R]) -> Callable[P, R]:
    """Let a method with a ``client`` return an awaitable when that client is asynchronous.

    Without a client it gets the current one, if there is one, and with False none.
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

    The event loop is never blocked, neither by computations nor by what comes from the scheduler.
    When the task that awaits is cancelled, the work ends where it asks :func:`stop_if_asked`, and
    only then does this raise the CancelledError: nothing is left at work.
    """
    other = client is not None and client.asynchronous  # which it is not in another thread

    def work() -> R:
        if not other:
            return method(*arguments, client=client, **options)
        from distributed import Client

        address, security = client.scheduler.address, client.security
        with Client(address, security=security, set_as_default=False) as synchronous:
            return method(*arguments, client=synchronous, **options)

    asked, context = threading.Event(), copy_context()
    context.run(_stop.set, asked)
    # Not a Task, from which an interruption would escape into the loop.
    working = asyncio.get_running_loop().run_in_executor(None, context.run, work)
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        asked.set()
        await asyncio.wait([working])
        if not working.cancelled():
            working.exception()  # the interruption itself
        raise
