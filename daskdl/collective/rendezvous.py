"""Rendezvous: the worker plugin where ranks of a collective meet, and the driver meets rank 0."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections import OrderedDict
from collections.abc import Mapping
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from distributed import WorkerPlugin
from distributed.comm import connect
from distributed.core import Status
from distributed.protocol import to_serialize

from daskdl.collective.transport.comm import BrokenGangError

if TYPE_CHECKING:
    from distributed import Worker
    from distributed.comm import Comm


class Mailbox:
    """Passes requests from the worker's event loop, which hears the driver, to the rank."""

    def __init__(self) -> None:
        self._requests: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._answers: dict[int, Future[Any]] = {}
        self._lock, self._left = threading.Lock(), False

    def put(self, request: Any) -> bool:
        """Post a request; False if the rank has left."""
        with self._lock:
            if not self._left:
                self._requests.put(request)
            return not self._left

    def take(self, seconds: float) -> Any:
        """Wait for the next request; if none comes in time, leave and return None."""
        with suppress(queue.Empty):
            return self._requests.get(timeout=seconds)
        with self._lock:
            self._left = self._requests.empty()
            return None if self._left else self._requests.get()

    def give(self, first: int, answer: Any) -> None:
        """Answer request ``first``, unless the driver no longer waits."""
        with suppress(InvalidStateError):
            self.answer(first).set_result(answer)

    def answer(self, first: int) -> Future[Any]:
        """Return the Future of the answer to request ``first``."""
        with self._lock:
            return self._answers.setdefault(first, Future())

    def drop(self, first: int) -> None:
        """Drop an answer."""
        with self._lock:
            self._answers.pop(first, None)

    def close(self) -> None:
        """Answer every open request with None, and take no more."""
        with self._lock:
            self._left = True
            answers = [*self._answers.values()]
        self._requests.put(None)
        for answer in answers:
            with suppress(InvalidStateError):
                answer.set_result(None)


class Rendezvous(WorkerPlugin):
    """Gives connections between workers to the ranks of collectives on them.

    Ranks meet at the worker's own address: no port is opened, and the cluster's protocol (TCP, TLS,
    UCX) is used. A connection belongs to one attempt of one run. If it comes after the attempt has
    ended, it is closed: no message of an old attempt is read.
    """

    name = "daskdl-gang"
    #: A run that begins must not take the place of what others meet at.
    idempotent = True
    #: Most runs whose state is kept.
    runs = 2

    def setup(self, worker: Worker) -> None:
        """Start on a worker."""
        self.worker = worker
        #: State that a rank of each run keeps here from one task to the next.
        self.kept: OrderedDict[str, Any] = OrderedDict()
        self._came: dict[tuple[str, int, int], asyncio.Future[Comm]] = {}
        self._open: dict[tuple[str, int], set[Comm]] = {}
        self._ended: dict[str, tuple[int, str]] = {}
        self._mailboxes: dict[tuple[str, int], Mailbox] = {}
        #: Present occupation of the rank here, by run: told when it takes too long.
        self.at: dict[str, str] = {}
        worker.handlers["daskdl_gang_join"] = self.join
        worker.handlers["daskdl_gang_ask"] = self.ask
        worker.handlers["daskdl_gang_end"] = self.end
        worker.handlers["daskdl_gang_forget"] = self.forget

    async def join(self, comm: Comm, run: str, attempt: int, rank: int) -> Any:
        """Take a connection from ``rank``."""
        if self.why(run, attempt):
            comm.abort()
            return Status.dont_reply
        self._opened(run, attempt, comm)
        came = self._coming(run, attempt, rank)
        if came.done():
            comm.abort()
        else:
            came.set_result(comm)
        # While this waits the worker does not read from the connection itself.
        while not comm.closed() and not self.why(run, attempt):
            await asyncio.sleep(0.5)
        return Status.dont_reply

    async def meet(
        self, run: str, attempt: int, rank: int, addresses: Mapping[int, str], patience: float
    ) -> dict[int, Comm]:
        """Return a connection to each peer; the higher rank connects.

        Raises
        ------
        BrokenGangError
            When a peer cannot be reached, does not come in time, or the attempt has ended.
        """
        if why := self.why(run, attempt):
            raise BrokenGangError(why)

        async def one(peer: int) -> Comm:
            if peer > rank:
                return await self._coming(run, attempt, peer)
            options = self.worker.security.get_connection_args("worker")
            comm = await connect(addresses[peer], timeout=patience, **options)
            self._opened(run, attempt, comm)
            where = {"run": run, "attempt": attempt, "rank": rank}
            await comm.write({"op": "daskdl_gang_join", "reply": False, **where})
            return comm

        tasks = {peer: asyncio.ensure_future(one(peer)) for peer in addresses}

        def give_up(_: object) -> None:
            for task in tasks.values():
                task.cancel()

        # Nobody comes by one's own rank: this is done when the attempt ends. Dask tries to connect
        # to a killed worker's address until its time is over.
        self._coming(run, attempt, rank).add_done_callback(give_up)
        try:
            await asyncio.wait(
                tasks.values(), timeout=patience, return_when=asyncio.FIRST_EXCEPTION
            )
            if why := self.why(run, attempt):
                raise BrokenGangError(why)
            for peer, task in tasks.items():
                if task.done() and (error := task.exception()):
                    raise BrokenGangError(
                        f"worker {addresses[peer]} cannot be reached ({error})"
                    ) from error
            late = [addresses[peer] for peer, task in tasks.items() if not task.done()]
            if late:
                raise BrokenGangError(f"worker {late[0]} did not come within {patience:g} s")
            return {peer: task.result() for peer, task in tasks.items()}
        finally:
            give_up(None)

    async def ask(self, run: str, attempt: int, first: int, word: Any = None) -> Any:
        """Post a request to rank 0, on this worker, and wait for its answer.

        Parameters
        ----------
        run, attempt, first : str, int, int
            ``first`` is the answer's number, for a fit the group's first iteration.
        word : sequence, optional
            The request. None if rank 0 has it already; an empty one ends the attempt.

        Returns
        -------
        {"result": the answer}; None if the attempt has come to its end.
        """
        if self.why(run, attempt):
            return None
        mailbox = self.mailbox(run, attempt)
        if word is not None and (not mailbox.put(word) or not word):
            return None
        answer = await asyncio.wrap_future(mailbox.answer(first))
        mailbox.drop(first)
        return None if answer is None else {"result": to_serialize(answer)}

    def mailbox(self, run: str, attempt: int) -> Mailbox:
        """Return the mailbox of the driver and rank 0 of an attempt."""
        return self._mailboxes.setdefault((run, attempt), Mailbox())

    async def end(self, run: str, attempt: int, why: str) -> str:
        """End an attempt that is not over; ranks that wait for a peer in it get ``why``.

        Returns
        -------
        str
            What the rank here is doing; empty if nothing.
        """
        at = self.at.get(run, "")
        if self.why(run, attempt):
            return at
        self._ended[run] = attempt, why
        for key in [key for key in self._came if key[0] == run and key[1] <= attempt]:
            came = self._came.pop(key)
            if not came.done():
                came.set_exception(BrokenGangError(why))
                came.exception()  # maybe nobody waits
        for number in [n for n in self._mailboxes if n[0] == run and n[1] <= attempt]:
            self._mailboxes.pop(number).close()
        for number, comms in list(self._open.items()):
            if number[0] == run and number[1] <= attempt:
                del self._open[number]
                for comm in comms:
                    comm.abort()
        return at

    async def forget(self, run: str) -> None:
        """End all attempts of a run and drop its state here."""
        await self.end(run, 1 << 62, "the run has ended")
        self.kept.pop(run, None)

    def keep(self, run: str, attempt: int, state: Any) -> None:
        """Keep a rank's state for its next task, if the attempt is not over."""
        self.kept[run] = state
        self.kept.move_to_end(run)
        while len(self.kept) > self.runs:
            self.kept.popitem(last=False)
        # Looked at last: a rank that comes to its end late is not to keep what nobody asks for,
        # and the run may be forgotten in another thread just now.
        if self.why(run, attempt):
            self.kept.pop(run, None)

    def why(self, run: str, attempt: int) -> str | None:
        """Return why an attempt was ended, None if it was not."""
        last, why = self._ended.get(run, (-1, ""))
        return why if attempt <= last else None

    def _coming(self, run: str, attempt: int, rank: int) -> asyncio.Future[Comm]:
        key = run, attempt, rank
        if key not in self._came:
            self._came[key] = asyncio.get_running_loop().create_future()
        return self._came[key]

    def _opened(self, run: str, attempt: int, comm: Comm) -> None:
        self._open.setdefault((run, attempt), set()).add(comm)
