"""Messages between two ranks, and their way over Dask's own connections (TCP, TLS, UCX).

A message has a head that says whose and which it is, a note, and arrays.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np
from distributed.protocol import to_serialize
from numpy.typing import NDArray

if TYPE_CHECKING:
    from distributed.comm import Comm

T = TypeVar("T")
Array = NDArray[np.generic]

#: Run, attempt, step and kind of a message.
Head = tuple[str, int, int, str]

#: By peer, a note (plain data) and arrays.
Sends = Mapping[int, tuple[Any, Sequence[Array]]]

#: From a message's note to the arrays that its own are written to.
Room = Callable[[Any], Sequence[Array]]

#: Poll interval (s): how often a waiting rank checks whether the attempt was ended.
POLL = 0.1


class BrokenGangError(ConnectionError):
    """An attempt that cannot go on, since a rank is lost, late or has failed."""


class PeerError(Exception):
    """A peer is lost by an exception; it is late if the exception is None."""

    def __init__(self, peer: int, error: BaseException | None) -> None:
        super().__init__(peer, error)
        self.peer, self.error = peer, error


class Transport(Protocol):
    """A way to exchange messages with peers."""

    def swap(self, head: Head, sends: Sends, receives: Mapping[int, Room]) -> dict[int, Any]:
        """Send messages to some peers, and return the notes of others' messages.

        Raises
        ------
        PeerError
        """

    def end(self, head: Head, why: str) -> None:
        """Tell the peers why the attempt ends."""

    def close(self) -> None:
        """Close the connections; messages that were sent still arrive."""


def check(received: Sequence[Any], head: Head, note: Any) -> None:
    """Raise BrokenGangError unless a message is the one expected."""
    if tuple(received[:2]) == head[:2] and received[3] == "end":
        raise BrokenGangError(str(note))
    if tuple(received) != head:
        raise BrokenGangError(f"it sent {tuple(received)} where {head} was expected")


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
