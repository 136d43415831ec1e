"""Exchange: one rank's connections to its peers in one attempt."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Coroutine, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from daskdl.collective.transport.comm import (
    POLL,
    BrokenGangError,
    CommTransport,
    PeerError,
    Room,
    Sends,
    Transport,
)
from daskdl.collective.transport.connecting import plain_socket
from daskdl.collective.transport.plain_socket import PeerSocket, SocketTransport
from daskdl.compat.dask import is_plain_tcp

if TYPE_CHECKING:
    from distributed.comm import Comm

    from daskdl.collective.rendezvous import Rendezvous

T = TypeVar("T")


class Exchange:
    """Messages with peers, each wait with a deadline; errors name the peer and the step.

    Parameters
    ----------
    run, attempt : str, int
        A message of another run or attempt is refused.
    names : mapping of peer to str
        Names for errors.
    transport : Transport, optional
        None if there are no peers.
    patience : float
        Seconds to wait for a peer; errors say how many.
    rendezvous : Rendezvous, optional
        Found the peers, and knows whether the attempt was ended.
    comms : mapping of peer to Comm
        Connections that :meth:`close` closes.
    """

    def __init__(
        self,
        run: str,
        attempt: int,
        names: Mapping[int, str],
        transport: Transport | None = None,
        patience: float = 60.0,
        rendezvous: Rendezvous | None = None,
        comms: Mapping[int, Comm] | None = None,
    ) -> None:
        self._run, self._attempt, self._names = run, attempt, dict(names)
        self._transport, self._patience = transport, patience
        self._rendezvous, self._comms = rendezvous, dict(comms or {})
        self._interrupted: str | None = None
        self._thread = threading.get_ident()

    @classmethod
    def open(
        cls,
        rendezvous: Rendezvous,
        run: str,
        attempt: int,
        rank: int,
        addresses: Mapping[int, str],
        names: Mapping[int, str],
        patience: float,
        plain_sockets: bool = True,
    ) -> Exchange:
        """Connect to peers.

        Plain TCP connections are taken from the event loop, see
        :class:`~daskdl.collective.transport.plain_socket.SocketTransport`; others, for instance
        with TLS, are used by the loop.

        Parameters
        ----------
        rendezvous : Rendezvous
            The worker's.
        run, attempt, rank : str, int, int
            Identify this end in messages.
        addresses, names : mapping of peer to str
        patience : float
            Seconds to wait for a peer.
        plain_sockets : bool
            False leaves all connections to the event loop; all ranks must say the same.

        Raises
        ------
        BrokenGangError
            When a peer cannot be reached or does not come in time.
        """
        exchange = cls(run, attempt, names, None, patience, rendezvous)
        if addresses:
            try:
                exchange._connect(rank, addresses, plain_sockets)
            except BaseException as error:
                exchange.close(f"{type(error).__name__}: {error}")
                raise
        return exchange

    def swap(
        self, step: int, kind: str, sends: Sends, receives: Mapping[int, Room]
    ) -> dict[int, Any]:
        """Send a note and arrays to some peers, and return the notes of others.

        Arrays that are sent must not change until every receiver has sent something later.

        Parameters
        ----------
        step, kind : int, str
            Identify the message; the received ones must have the same.
        sends : mapping of peer to (note, arrays)
            A note is plain data that msgpack takes.
        receives : mapping of peer to callable
            Given the peer's note, returns the arrays to fill.

        Raises
        ------
        BrokenGangError
            When a peer is lost, late, or ends the attempt.
        """
        if not (sends or receives):
            return {}
        assert self._transport is not None, "no peer was connected"
        # Errors say what the rank is at. That is what the thread does which opened this; another
        # thread exchanges buckets meanwhile.
        known = self._rendezvous is not None and threading.get_ident() == self._thread
        at = self._rendezvous.at if known and self._rendezvous else {}
        before = at.get(self._run, "")
        at[self._run] = f"iteration {step}, {kind}"
        try:
            return self._transport.swap((self._run, self._attempt, step, kind), sends, receives)
        except PeerError as error:
            raise self._broken(step, kind, error) from error.error
        finally:
            at[self._run] = before

    @property
    def interruptible(self) -> bool:
        """Whether :meth:`interrupt` has an effect."""
        return isinstance(self._transport, SocketTransport)

    def interrupt(self, why: str) -> None:
        """End the wait of :meth:`swap` in another thread."""
        self._interrupted = why

    def close(self, why: str | None = None) -> None:
        """End the attempt here; peers that still wait get ``why``."""
        if self._transport is not None:
            if why is not None:
                self._transport.end((self._run, self._attempt, -1, "end"), why)
            self._transport.close()
        if self._rendezvous is not None:
            self._in_loop(self._close(why))

    def _ended(self) -> str | None:
        if self._interrupted is not None:
            return self._interrupted
        return self._rendezvous and self._rendezvous.why(self._run, self._attempt)

    def _broken(self, step: int, kind: str, lost: PeerError) -> BrokenGangError:
        where = f"iteration {step}, {kind}" if step >= 0 else kind
        if why := self._ended():
            return BrokenGangError(f"{where}: {why}")
        where, error = f"{where}: {self._names[lost.peer]}", lost.error
        if error is None:
            return BrokenGangError(f"{where} sent nothing for {self._patience:g} s")
        if isinstance(error, BrokenGangError):
            return BrokenGangError(f"{where} ended the attempt: {error}")
        return BrokenGangError(f"{where} is lost ({type(error).__name__}: {error})")

    # --- Dask's connections

    def _in_loop(self, work: Coroutine[Any, Any, T]) -> T:
        assert self._rendezvous is not None
        loop = self._rendezvous.worker.loop.asyncio_loop
        return asyncio.run_coroutine_threadsafe(work, loop).result()

    def _connect(self, rank: int, addresses: Mapping[int, str], plain_sockets: bool) -> None:
        assert self._rendezvous is not None
        who = self._run, self._attempt, rank
        self._comms = self._in_loop(self._rendezvous.meet(*who, addresses, self._patience))
        for comm in self._comms.values():
            comm.allow_offload = False  # a hop between threads costs more than it gives
        # Both ends of a connection are of one kind, so that the peer decides alike.
        if plain_sockets and all(map(is_plain_tcp, self._comms.values())):
            sockets = self._in_loop(self._sockets(rank))
            self._transport = SocketTransport(sockets, self._patience, self._ended)
        else:
            loop = self._rendezvous.worker.loop.asyncio_loop
            self._transport = CommTransport(self._comms, loop, self._patience)

    async def _sockets(self, rank: int) -> dict[int, PeerSocket]:
        """Take the connections from the event loop."""
        tasks = {
            peer: asyncio.ensure_future(plain_socket(comm, connects=peer < rank))
            for peer, comm in self._comms.items()
        }
        try:
            limit = time.monotonic() + self._patience
            while not all(task.done() for task in tasks.values()):
                await asyncio.wait(
                    tasks.values(), timeout=POLL, return_when=asyncio.FIRST_EXCEPTION
                )
                for peer, task in tasks.items():
                    if task.done() and (error := task.exception()):
                        raise self._broken(-1, "first words", PeerError(peer, error))
                    if self._ended() or (not task.done() and time.monotonic() > limit):
                        raise self._broken(-1, "first words", PeerError(peer, None))
            return {peer: task.result() for peer, task in tasks.items()}
        except BaseException:
            # Those that were made are in no transport yet, whose close would close them.
            for task in tasks.values():
                if task.done() and not task.cancelled() and not task.exception():
                    task.result().close()
            raise
        finally:
            for task in tasks.values():
                task.cancel()

    async def _close(self, why: str | None) -> None:
        for comm in self._comms.values():
            try:
                await asyncio.wait_for(comm.close(), self._patience)
            except (OSError, TimeoutError):
                comm.abort()
        assert self._rendezvous is not None
        await self._rendezvous.end(self._run, self._attempt, why or "it has ended")
