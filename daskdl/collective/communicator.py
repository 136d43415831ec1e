"""Exchange: messages between the members of one attempt, each wait with a deadline."""

from __future__ import annotations

import asyncio
import select
import time
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from distributed.protocol import to_serialize

from daskdl.collective.rendezvous import BrokenGangError, Meeting
from daskdl.collective.transport.connecting import can_link, linked
from daskdl.collective.transport.socket import Array, Head, Link, check, coming

if TYPE_CHECKING:
    from distributed.comm import Comm

T = TypeVar("T")

#: Seconds after which one who waits looks whether the attempt has been ended.
GLANCE = 0.1


class Exchange:
    """One member's connections to its peers in one attempt.

    What goes over TCP is sent and received by the task's own thread, through a
    :class:`~daskdl.collective.transport.socket.Link` to each peer; other connections, such as those
    with TLS, by the worker's event loop, which the thread waits for.

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
        self._links: dict[int, Link] = {}

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
        # A peer has the same kind of connection, and comes to the same conclusion.
        if all(map(can_link, self._comms.values())):
            self._in_loop(self._link())

    def swap(
        self,
        iteration: int,
        kind: str,
        sends: Mapping[int, tuple[Any, Sequence[Array]]],
        receives: Mapping[int, Sequence[Array]],
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
        what = iteration, kind
        if self._links:
            return self._swap_links(what, sends, receives)
        return self._in_loop(self._swap(what, sends, receives))

    def close(self, why: str | None = None) -> None:
        """End the attempt here; peers that still wait for something are told ``why``."""
        self._in_loop(self._close(why))

    def _in_loop(self, work: Coroutine[Any, Any, T]) -> T:
        loop = self._meeting.worker.loop.asyncio_loop
        return asyncio.run_coroutine_threadsafe(work, loop).result()

    async def _link(self) -> None:
        """Take the connections from the event loop."""
        what = -1, "first words"
        tasks = {
            peer: asyncio.ensure_future(linked(comm, connects=peer < self._rank))
            for peer, comm in self._comms.items()
        }
        try:
            limit = time.monotonic() + self._patience
            while not all(task.done() for task in tasks.values()):
                await asyncio.wait(
                    tasks.values(), timeout=GLANCE, return_when=asyncio.FIRST_EXCEPTION
                )
                for peer, task in tasks.items():
                    if task.done() and (error := task.exception()):
                        raise self._broken(what, peer, error)
                    if self._ended() or (not task.done() and time.monotonic() > limit):
                        raise self._broken(what, peer, None)
        finally:
            for task in tasks.values():
                task.cancel()
            self._links = {
                peer: task.result()
                for peer, task in tasks.items()
                if task.done() and not task.cancelled() and not task.exception()
            }

    def _swap_links(
        self,
        what: tuple[int, str],
        sends: Mapping[int, tuple[Any, Sequence[Array]]],
        receives: Mapping[int, Sequence[Array]],
    ) -> dict[int, Any]:
        head = (self._run, self._attempt, *what)
        for peer, (note, arrays) in sends.items():
            self._links[peer].send(head, note, arrays)
        for peer, arrays in receives.items():
            self._links[peer].receive(head, arrays)
        busy = {peer: self._links[peer] for peer in {*sends, *receives}}
        ready, limit = set(busy), time.monotonic() + self._patience
        while True:
            for peer in ready:
                try:
                    busy[peer].go_on()
                except OSError as error:  # a broken gang, too
                    raise self._broken(what, peer, error) from error
            busy = {peer: link for peer, link in busy.items() if link.sends or link.receives}
            if not busy:
                return {peer: self._links[peer].note for peer in receives}
            ready = _ready(busy, GLANCE)
            if ready:
                limit = time.monotonic() + self._patience
            elif self._ended() or time.monotonic() > limit:
                late = [peer for peer, link in busy.items() if link.receives]
                raise self._broken(what, (late or [*busy])[0], None)

    def _ended(self) -> str | None:
        return self._meeting.why(self._run, self._attempt)

    async def _swap(
        self,
        what: tuple[int, str],
        sends: Mapping[int, tuple[Any, Sequence[Array]]],
        receives: Mapping[int, Sequence[Array]],
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
        where = f"iteration {iteration}, {kind}" if iteration >= 0 else kind
        if why := self._ended():
            return BrokenGangError(f"{where}: {why}")
        where = f"{where}: {self._names[peer]}"
        if error is None:
            return BrokenGangError(f"{where} sent nothing for {self._patience:g} s")
        if isinstance(error, BrokenGangError):
            return BrokenGangError(f"{where} ended the attempt: {error}")
        broken = BrokenGangError(f"{where} is lost ({type(error).__name__}: {error})")
        broken.__cause__ = error
        return broken

    async def _close(self, why: str | None) -> None:
        if why is not None:
            for link in self._links.values():
                link.end(self._run, self._attempt, why)
            for comm in () if self._links else self._comms.values():
                with suppress(OSError):
                    await _write(comm, (self._run, self._attempt, -1, "end"), why, ())
        for link in self._links.values():
            link.close()
        for comm in self._comms.values():
            try:
                await asyncio.wait_for(comm.close(), self._patience)
            except (OSError, TimeoutError):
                comm.abort()
        await self._meeting.end(self._run, self._attempt, why or "it has ended")


def _ready(links: Mapping[int, Link], seconds: float) -> set[int]:
    """Wait until some links can go on, and return which; none if that takes too long."""
    poll, peers = select.poll(), {}
    for peer, link in links.items():
        peers[link.fileno()] = peer
        poll.register(link, select.POLLIN * link.reads | select.POLLOUT * link.writes)
    return {peers[number] for number, _ in poll.poll(1000 * seconds)}


async def _write(comm: Comm, head: Head, note: Any, arrays: Sequence[Array]) -> None:
    await comm.write([head, note, [to_serialize(a) for a in arrays]])


async def _read(comm: Comm, head: Head, arrays: Sequence[Array]) -> Any:
    """Return the note, and fill those of the arrays that the note does not leave out."""
    found, note, values = await comm.read()
    check(found, head, note)
    for array, value in zip(coming(note, arrays), values, strict=True):
        array[...] = value
    return note
