"""Exchange: messages between the members of one attempt, each wait with a deadline."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

import msgpack  # type: ignore[import-untyped]
import numpy as np
from distributed.comm.tcp import TCP
from distributed.protocol import to_serialize
from numpy.typing import NDArray
from tornado.iostream import StreamClosedError

from daskdl.train.meeting import BrokenGangError, Meeting

if TYPE_CHECKING:
    from distributed.comm import Comm

Vector = NDArray[np.float32]
T = TypeVar("T")

_HEAD = struct.Struct("<Q")


class Exchange:
    """One member's connections to its peers in one attempt.

    All runs in the worker's event loop, which the task's thread waits for.

    Parameters
    ----------
    meeting : Meeting
        The worker's.
    run, attempt, rank : str, int, int
        Who speaks; a message of another run or attempt is refused.
    peers : mapping of rank to address
    names : mapping of rank to str
        As errors call them.
    patience : float
        Seconds to wait for a peer.
    """

    def __init__(
        self,
        meeting: Meeting,
        run: str,
        attempt: int,
        rank: int,
        peers: Mapping[int, str],
        names: Mapping[int, str],
        patience: float,
    ) -> None:
        self._meeting, self._run, self._attempt, self._rank = meeting, run, attempt, rank
        self._peers, self._names, self._patience = dict(peers), dict(names), patience
        self._comms: dict[int, Comm] = {}

    def open(self) -> None:
        """Connect to all peers.

        Raises
        ------
        BrokenGangError
        """
        if not self._peers:
            return
        who = self._run, self._attempt, self._rank
        self._comms = self._in_loop(self._meeting.meet(*who, self._peers, self._patience))
        for comm in self._comms.values():
            comm.allow_offload = False  # a hop between threads costs more than it gives

    def swap(
        self,
        iteration: int,
        kind: str,
        sends: Mapping[int, tuple[Any, Sequence[Vector]]],
        receives: Mapping[int, Sequence[Vector]],
    ) -> dict[int, Any]:
        """Send a note and arrays to some peers, and return the notes of others.

        What is sent must not be changed until something has come from all who depend on it.

        Parameters
        ----------
        iteration, kind : int, str
            Of what is sent and must be received.
        sends : mapping of peer to (note, arrays)
            A note is plain data; it may be a list with None where an array of ``receives`` does not
            come.
        receives : mapping of peer to arrays
            That are filled.

        Raises
        ------
        BrokenGangError
            When a peer is lost, late, or ends the attempt.
        """
        return self._in_loop(self._swap((iteration, kind), sends, receives))

    def close(self, why: str | None = None) -> None:
        """End the attempt here; peers that still wait for something are told ``why``."""
        self._in_loop(self._close(why))

    def _in_loop(self, work: Coroutine[Any, Any, T]) -> T:
        loop = self._meeting.worker.loop.asyncio_loop
        return asyncio.run_coroutine_threadsafe(work, loop).result()

    async def _swap(
        self,
        what: tuple[int, str],
        sends: Mapping[int, tuple[Any, Sequence[Vector]]],
        receives: Mapping[int, Sequence[Vector]],
    ) -> dict[int, Any]:
        head = (self._run, self._attempt, *what)
        reading = {
            peer: asyncio.ensure_future(_read(self._comms[peer], head, arrays))
            for peer, arrays in receives.items()
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
                        raise self._broken(what, peer, error)
            for group in (reading, writing):
                for peer, task in group.items():
                    if not task.done():
                        raise self._broken(what, peer, None)
            return {peer: task.result() for peer, task in reading.items()}
        finally:
            for task in tasks:
                task.cancel()

    def _broken(
        self, what: tuple[int, str], peer: int, error: BaseException | None
    ) -> BrokenGangError:
        iteration, kind = what
        where = f"iteration {iteration}, {kind}: {self._names[peer]}"
        if why := self._meeting.why(self._run, self._attempt):
            return BrokenGangError(f"iteration {iteration}, {kind}: {why}")
        if error is None:
            return BrokenGangError(f"{where} sent nothing for {self._patience:g} s")
        if isinstance(error, BrokenGangError):
            return BrokenGangError(f"{where} ended the attempt: {error}")
        broken = BrokenGangError(f"{where} is lost ({type(error).__name__}: {error})")
        broken.__cause__ = error
        return broken

    async def _close(self, why: str | None) -> None:
        if why is not None:
            for comm in self._comms.values():
                with suppress(OSError):
                    await _write(comm, (self._run, self._attempt, -1, "end"), why, ())
        for comm in self._comms.values():
            try:
                await asyncio.wait_for(comm.close(), self._patience)
            except (OSError, TimeoutError):
                comm.abort()
        await self._meeting.end(self._run, self._attempt, why or "it has ended")


async def _write(
    comm: Comm, head: tuple[str, int, int, str], note: Any, arrays: Sequence[Vector]
) -> None:
    if not isinstance(comm, TCP):
        await comm.write([head, note, [to_serialize(a) for a in arrays]])
        return
    # The same bytes without Dask's envelope: they arrive in memory that is there already.
    if comm.stream is None:
        raise StreamClosedError
    text = msgpack.packb([head, note])
    comm.stream.write(_HEAD.pack(len(text)) + text)
    for array in arrays:
        if array.size:
            comm.stream.write(array.data.cast("B"))


async def _read(comm: Comm, head: tuple[str, int, int, str], arrays: Sequence[Vector]) -> Any:
    """Return the note, and fill those of the arrays that the note does not leave out."""
    if not isinstance(comm, TCP):
        found, note, values = await comm.read()
        _check(found, head, note)
        for array, value in zip(_coming(note, arrays), values, strict=True):
            array[...] = value
        return note
    if comm.stream is None:
        raise StreamClosedError
    (length,) = _HEAD.unpack(await comm.stream.read_bytes(_HEAD.size))
    found, note = msgpack.unpackb(await comm.stream.read_bytes(length))
    _check(found, head, note)
    for array in _coming(note, arrays):
        if array.size:
            await comm.stream.read_into(array.data.cast("B"))
    return note


def _coming(note: Any, arrays: Sequence[Vector]) -> list[Vector]:
    if not isinstance(note, list):
        return list(arrays)
    return [array for array, of in zip(arrays, note, strict=True) if of is not None]


def _check(found: Sequence[Any], head: tuple[str, int, int, str], note: Any) -> None:
    if tuple(found[:2]) == head[:2] and found[3] == "end":
        raise BrokenGangError(str(note))
    if tuple(found) != head:
        raise BrokenGangError(f"it sent {tuple(found)} where {head} was expected")
