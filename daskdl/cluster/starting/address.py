"""Addresses of schedulers: read them from files, check them, and find the server there."""

from __future__ import annotations

import asyncio
import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from daskdl.errors import ClusterError

#: Seconds to wait for the rest of a scheduler file that may be incomplete.
WRITING = 2.0


def who_answers(address: str, timeout: float) -> str:
    """Return the type of the Dask server at an address, or "none" with the reason.

    Raises OSError or TimeoutError without an answer in time.
    """
    # A Client would wait forever at an open port that does not answer, and a Client that fails to
    # start remains the default of this process.
    from distributed.core import rpc
    from distributed.security import Security

    async def ask() -> str:
        options = Security().get_connection_args("client")
        async with rpc(address, timeout=timeout, connection_args=options) as scheduler:
            return str((await scheduler.identity())["type"])

    async def ask_in_time() -> str:
        return await asyncio.wait_for(ask(), timeout)

    # In a thread, since a notebook already has a running event loop.
    with ThreadPoolExecutor(1) as pool:
        try:
            return pool.submit(asyncio.run, ask_in_time()).result()
        except OSError:
            raise
        except Exception as error:  # the answer of another program may raise any kind
            return f"none ({type(error).__name__}: {one_line(error)})"


def check_address(spec: str, address: str) -> None:
    """Raise a ClusterError unless ``address`` has the form of a scheduler's address."""
    from distributed.comm.addressing import get_address_host_port, parse_address
    from distributed.comm.registry import get_backend

    try:
        scheme, _ = parse_address(address)
        get_backend(scheme)
        if scheme in ("tcp", "tls"):
            get_address_host_port(address)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ClusterError(
            f"{spec}: expected the address of a Dask scheduler, such as tcp://host:8786, found "
            f"{address!r} ({one_line(error)}); give the one that the scheduler printed"
        ) from error


def address_in(path: Path) -> str:
    """Return the address in a scheduler file; wait a little if the file is incomplete."""
    if not path.is_file():
        raise ClusterError(
            f"{path}: expected a scheduler file, found none; start the scheduler with "
            "--scheduler-file and wait until it has written it"
        )
    limit = time.monotonic() + WRITING
    while True:
        try:
            return str(json.loads(path.read_text())["address"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            if isinstance(error, ValueError) and time.monotonic() < limit:
                time.sleep(0.02)
                continue
            raise ClusterError(
                f"{path}: expected a scheduler file, as dask scheduler --scheduler-file writes it, "
                f"found no address in it ({type(error).__name__}: {error}); remove it and "
                "start the scheduler anew"
            ) from error


def one_line(error: BaseException) -> str:
    """Return an exception's text in one line."""
    return " ".join(str(error).split())
