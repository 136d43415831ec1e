"""Plain sockets to peers, read and written by the task's own thread, without an event loop.

A rank only waits for its peers: passing messages to the worker's event loop and back took longer
than sending 1 MB. Between processes of one machine the socket is a Unix socket, and arrays go
through :mod:`~daskdl.collective.transport.shared_memory`.
"""

from __future__ import annotations

import os
import select
import socket
import struct
import time
from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgpack  # type: ignore[import-untyped]
import numpy as np

from daskdl.collective.transport.comm import POLL, Array, Head, PeerError, Room, Sends, check
from daskdl.collective.transport.shared_memory import WORTH, SharedMemory

# Bytes of the text that follows, where the arrays are, and bytes of new shared memory, 0 for none.
# Lengths come first since the socket is a stream: it keeps no borders between messages.
_START = struct.Struct("<QBQ")
_INLINE, _SHARED, _SHARED_IS_READ = range(3)
_READ = _START.pack(0, _SHARED_IS_READ, 0)


class PeerSocket:
    """One end of a connection.

    It has one message to send and one to receive at a time; :meth:`go_on` moves both as far as
    possible without waiting.

    Parameters
    ----------
    connection : socket
        A socket that nothing else uses.
    """

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self._socket = connection
        self._unix = connection.family == socket.AF_UNIX
        self._shares = self._unix
        self._queue: deque[tuple[memoryview, list[int]]] = deque()  # with descriptors
        # Waits until the peer has read what lies in the shared memory.
        self._outgoing: tuple[Head, Any, Sequence[Array]] | None = None
        self._expected: tuple[Head, Room] | None = None
        self._out: SharedMemory | None = None
        self._out_free = True  # the peer has read what was written there last
        self._in: SharedMemory | None = None
        self._reading = self._messages()
        self.note: Any = None  #: Of what was received last.

    def fileno(self) -> int:
        """Return the socket's number."""
        return self._socket.fileno()

    def send(self, head: Head, note: Any, arrays: Sequence[Array]) -> None:
        """Begin to send a message; its arrays must not change until it is sent."""
        self._outgoing = head, note, arrays
        self._hand_on()

    def receive(self, head: Head, room: Room) -> None:
        """Begin to receive a message; its arrays are written into the arrays ``room(note)``."""
        self._expected = head, room

    @property
    def sends(self) -> bool:
        """Whether something is still to be sent."""
        return bool(self._queue) or self._outgoing is not None

    @property
    def receives(self) -> bool:
        """Whether something is still to be received."""
        return self._expected is not None

    @property
    def writes(self) -> bool:
        """Whether :meth:`go_on` waits to write."""
        return bool(self._queue)

    @property
    def reads(self) -> bool:
        """Whether :meth:`go_on` waits to read."""
        return self._expected is not None or self._outgoing is not None

    def go_on(self) -> None:
        """Send and receive as much as possible without waiting.

        Raises
        ------
        OSError
            When the peer is lost.
        BrokenGangError
            When the peer ends the attempt, or sends another message than expected.
        """
        try:
            self._flush()
            # What was read may say that the shared memory is free, or ask for an answer.
            while self.reads and next(self._reading):
                self._hand_on()
            self._flush()
        except ConnectionError:
            next(self._reading, None)  # it may have said why
            raise

    def end(self, run: str, attempt: int, why: str) -> None:
        """Tell the peer why the attempt ends, unless a message is only sent in part."""
        # The peer would take these bytes for the rest of an array.
        if not self._queue:
            self._put(_INLINE, [(run, attempt, -1, "end"), why])
            with suppress(OSError):
                self._flush()

    def close(self) -> None:
        """Close the socket; messages that were sent still arrive."""
        self._reading.close()
        self._socket.close()

    def _hand_on(self) -> None:
        """Queue the message, unless the peer still has to read the shared memory."""
        if self._outgoing is None:
            return
        head, note, arrays = self._outgoing
        total = sum(array.nbytes for array in arrays)
        made: list[int] = []
        if self._shares and total >= WORTH:
            if not self._out_free:
                return
            # The descriptor travels once; the peer keeps the memory mapped for later messages.
            if self._out is None or self._out.size < total:
                try:
                    self._out, descriptor = SharedMemory.made(total)
                    made = [descriptor]
                except OSError:  # no memory for it
                    self._shares = False
        self._outgoing = None
        if self._shares and self._out is not None and total >= WORTH:
            self._out.write(arrays)
            self._out_free = False
            self._put(_SHARED, [head, note], self._out.size if made else 0, made)
        else:
            self._put(_INLINE, [head, note])
            self._queue.extend((a.reshape(-1).view(np.uint8).data, []) for a in arrays if a.size)

    def _put(self, way: int, text: Any, shared: int = 0, descriptors: Sequence[int] = ()) -> None:
        packed = msgpack.packb(text)
        start = _START.pack(len(packed), way, shared)
        if descriptors:  # they come with the first byte
            self._queue.append((memoryview(start), list(descriptors)))
            start = b""
        self._queue.append((memoryview(start + packed), []))

    def _flush(self) -> None:
        while self._queue:
            data, descriptors = self._queue[0]
            try:
                if descriptors:
                    count = socket.send_fds(self._socket, [data], descriptors)
                else:
                    count = self._socket.send(data)
            except BlockingIOError:
                return
            except ConnectionError:
                if data != _READ:
                    raise
                count = len(data)  # what it confirms was the peer's last message
            for descriptor in descriptors:
                os.close(descriptor)
            if count == len(data):
                self._queue.popleft()
            else:
                self._queue[0] = data[count:], []

    def _messages(self) -> Generator[bool]:
        """Read messages: yield True after each, False when there is nothing to read yet."""
        while True:
            start, descriptors = bytearray(_START.size), list[int]()
            yield from self._fill(memoryview(start), descriptors)
            length, way, shared = _START.unpack(start)
            text = bytearray(length)
            yield from self._fill(memoryview(text))
            if shared:
                self._in = SharedMemory(descriptors.pop(), shared)
            if way == _SHARED_IS_READ:
                self._out_free = True
                yield True
                continue
            content = msgpack.unpackb(text)
            head_read, note = content
            # A peer may be a step ahead: its message waits in the socket until it is expected here.
            while self._expected is None and head_read[3] != "end":
                yield False
            head, room = self._expected or ((*head_read[:3], ""), lambda note: ())
            check(head_read, head, note)
            arrays = room(note)
            if way == _SHARED:
                assert self._in is not None
                self._in.read(arrays)
                self._queue.append((memoryview(_READ), []))
            else:
                for array in arrays:
                    if array.size:
                        yield from self._fill(array.reshape(-1).view(np.uint8).data)
            self.note, self._expected = note, None
            yield True

    def _fill(self, room: memoryview, descriptors: list[int] | None = None) -> Generator[bool]:
        while room:
            try:
                # Descriptors arrive with the first byte of a start, and are lost if read otherwise.
                if descriptors is None or not self._unix:
                    count = self._socket.recv_into(room)
                else:
                    data, came, _, _ = socket.recv_fds(self._socket, len(room), 1)
                    descriptors += came
                    count = len(data)
                    room[:count] = data
            except BlockingIOError:
                yield False
                continue
            if not count:
                raise ConnectionResetError("it has closed the connection")
            room = room[count:]


class SocketTransport:
    """Messages over plain sockets.

    Parameters
    ----------
    sockets : mapping of peer to PeerSocket
    patience : float
        Seconds without a byte after which a peer is late.
    ended : callable
        Returns why the attempt was ended, None if it was not.
    """

    def __init__(
        self,
        sockets: Mapping[int, PeerSocket],
        patience: float,
        ended: Callable[[], str | None] = lambda: None,
    ) -> None:
        self._sockets, self._patience, self._ended = dict(sockets), patience, ended

    def swap(self, head: Head, sends: Sends, receives: Mapping[int, Room]) -> dict[int, Any]:
        """Send messages to some peers, and return the notes of others' messages."""
        for peer, (note, arrays) in sends.items():
            self._sockets[peer].send(head, note, arrays)
        for peer, room in receives.items():
            self._sockets[peer].receive(head, room)
        busy = {peer: self._sockets[peer] for peer in {*sends, *receives}}
        ready, limit = set(busy), time.monotonic() + self._patience
        while True:
            for peer in ready:
                try:
                    busy[peer].go_on()
                except OSError as error:  # a broken gang, too
                    raise PeerError(peer, error) from error
            busy = {peer: s for peer, s in busy.items() if s.sends or s.receives}
            if not busy:
                return {peer: self._sockets[peer].note for peer in receives}
            # The poll is short, so that the end of the attempt is seen while all peers are silent.
            ready = _ready(busy, POLL)
            if ready:
                limit = time.monotonic() + self._patience
            elif self._ended() or time.monotonic() > limit:
                late = [peer for peer, s in busy.items() if s.receives]
                raise PeerError((late or [*busy])[0], None)

    def end(self, head: Head, why: str) -> None:
        """Tell the peers why the attempt ends."""
        for each in self._sockets.values():
            each.end(head[0], head[1], why)

    def close(self) -> None:
        """Close the sockets; messages that were sent still arrive."""
        for each in self._sockets.values():
            each.close()


def _ready(sockets: Mapping[int, PeerSocket], seconds: float) -> set[int]:
    """Wait until some sockets can go on; return their peers, none after so many seconds."""
    poll, peers = select.poll(), {}
    for peer, each in sockets.items():
        peers[each.fileno()] = peer
        poll.register(each, select.POLLIN * each.reads | select.POLLOUT * each.writes)
    return {peers[number] for number, _ in poll.poll(1000 * seconds)}
