"""Asynchronous calls: a method that works in a thread of its own while an event loop goes on."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Callable
from contextvars import ContextVar, copy_context
from typing import Any, ParamSpec, TypeVar

from daskdl.cluster.current import check_client, current_client

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
