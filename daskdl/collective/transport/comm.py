"""Messages over Dask's own connections (TCP, TLS, UCX), by the worker's event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from distributed.protocol import to_serialize

from daskdl.collective.transport.message import Array, Head, PeerError, Room, Sends, check

if TYPE_CHECKING:
    from distributed.comm import Comm

T = TypeVar("T")


class CommTransport:
    """Messages over connections of ``distributed.comm``.

    Parameters
    ----------
    comms : mapping of peer to Comm
    loop : asyncio event loop
        The worker's loop, which reads and writes.
    patience : float
        Seconds that a message may take.
    """

    def __init__(
        self, comms: Mapping[int, Comm], loop: asyncio.AbstractEventLoop, patience: float
    ) -> None:
        self._comms, self._loop, self._patience = dict(comms), loop, patience

    def swap(self, head: Head, sends: Sends, receives: Mapping[int, Room]) -> dict[int, Any]:
        """Send messages to some peers, and return the notes of others' messages."""
        return self._wait(self._swap(head, sends, receives))

    def end(self, head: Head, why: str) -> None:
        """Tell the peers why the attempt ends."""
        self._wait(self._end(head, why))

    def close(self) -> None:
        """Do nothing: the exchange that opened the connections closes them."""

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _swap(self, head: Head, sends: Sends, receives: Mapping[int, Room]) -> dict[int, Any]:
        reading = {
            peer: asyncio.ensure_future(_read(self._comms[peer], head, room))
            for peer, room in receives.items()
        }
        writing = {
            peer: asyncio.ensure_future(_write(self._comms[peer], head, note, arrays))
            for peer, (note, arrays) in sends.items()
        }
        tasks = {*reading.values(), *writing.values()}
        try:
            if tasks:
                await asyncio.wait(
                    tasks, timeout=self._patience, return_when=asyncio.FIRST_EXCEPTION
                )
            for group in (reading, writing):
                for peer, task in group.items():
                    if task.done() and (error := task.exception()):
                        raise PeerError(peer, error)
            for group in (reading, writing):
                for peer, task in group.items():
                    if not task.done():
                        raise PeerError(peer, None)
            return {peer: task.result() for peer, task in reading.items()}
        finally:
            for task in tasks:
                task.cancel()

    async def _end(self, head: Head, why: str) -> None:
        for comm in self._comms.values():
            with suppress(OSError):
                await _write(comm, (*head[:2], -1, "end"), why, ())


async def _write(comm: Comm, head: Head, note: Any, arrays: Sequence[Array]) -> None:
    await comm.write([head, note, [to_serialize(a) for a in arrays]])


async def _read(comm: Comm, head: Head, room: Room) -> Any:
    """Read a message into its room, and return its note."""
    kind, note, values = await comm.read()
    check(kind, head, note)
    for array, value in zip(room(note), values, strict=True):
        array[...] = value
    return note
