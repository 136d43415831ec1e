"""The Dask client that a program has made, if it has, and what its cluster holds."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any

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

    Raises
    ------
    SettingsError
        When it is no client, is closed, or is asynchronous.
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

    Raises
    ------
    SettingsError
        For anything else, and for an asynchronous client unless it is asked for.
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
