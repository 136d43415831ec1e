"""Link: a plain socket to a peer that takes and gives messages without an event loop.

A member has nothing to do but to wait for its peers, so its own thread reads and writes: handing
messages to the worker's event loop and back took longer than 1 MB on its way. Between processes of
one machine the link is a Unix socket, and arrays go through a
:mod:`~daskdl.collective.transport.shared_memory`.
"""

from __future__ import annotations

import os
import socket
import struct
from collections import deque
from collections.abc import Generator, Sequence
from contextlib import suppress
from typing import Any

import msgpack  # type: ignore[import-untyped]
import numpy as np
from numpy.typing import NDArray

from daskdl.collective.rendezvous import BrokenGangError
from daskdl.collective.transport.shared_memory import WORTH, Lane

Array = NDArray[np.generic]

#: Run, attempt, iteration and kind of a message.
Head = tuple[str, int, int, str]

# Bytes of the text that follows, where the arrays are, and bytes of the lane that comes with it.
_START = struct.Struct("<QBQ")
_INLINE, _IN_LANE, _LANE_IS_READ = range(3)
_READ = _START.pack(0, _LANE_IS_READ, 0)


class Link:
    """One end.

    It has one message to send and one to receive at a time, which :meth:`go_on` carries as far as
    they go without waiting.

    Parameters
    ----------
    connection : socket
        That nobody else uses.
    """

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self._socket = connection
        self._unix = connection.family == socket.AF_UNIX
        self._by_lane = self._unix
        self._queue: deque[tuple[memoryview, list[int]]] = deque()  # with descriptors
        self._held: tuple[Head, Any, Sequence[Array]] | None = None  # until the lane is read
        self._expected: tuple[Head, Sequence[Array]] | None = None
        self._out: Lane | None = None
        self._out_free = True
        self._in: Lane | None = None
        self._reading = self._messages()
        self.note: Any = None  #: Of what was received last.

    def fileno(self) -> int:
        """Return the socket's number."""
        return self._socket.fileno()

    def send(self, head: Head, note: Any, arrays: Sequence[Array]) -> None:
        """Begin to send a message; its arrays must not change until it is sent."""
        self._held = head, note, arrays
        self._lay()

    def receive(self, head: Head, arrays: Sequence[Array]) -> None:
        """Begin to receive a message; its note tells which of the arrays come."""
        self._expected = head, arrays

    @property
    def sends(self) -> bool:
        """Whether something is to be sent yet."""
        return bool(self._queue) or self._held is not None

    @property
    def receives(self) -> bool:
        """Whether something is to be received yet."""
        return self._expected is not None

    @property
    def writes(self) -> bool:
        """Whether :meth:`go_on` waits until the socket takes something."""
        return bool(self._queue)

    @property
    def reads(self) -> bool:
        """Whether :meth:`go_on` waits until something comes."""
        return self._expected is not None or self._held is not None

    def go_on(self) -> None:
        """Send and receive what can be without waiting.

        Raises
        ------
        OSError
            When the peer is lost.
        BrokenGangError
            When it ends the attempt, or sends something else.
        """
        try:
            self._flush()
            while self.reads and next(self._reading):
                self._lay()
            self._flush()
        except ConnectionError:
            next(self._reading, None)  # it may have said why
            raise

    def end(self, run: str, attempt: int, why: str) -> None:
        """Tell the peer why the attempt ends, unless it would be in the middle of a message."""
        if not self._queue:
            self._put(_INLINE, [(run, attempt, -1, "end"), why])
            with suppress(OSError):
                self._flush()

    def close(self) -> None:
        """Close the socket; what was sent arrives all the same."""
        self._reading.close()
        self._socket.close()

    def _lay(self) -> None:
        """Hand the message on, if nothing that the peer has to read yet is in the way."""
        if self._held is None:
            return
        head, note, arrays = self._held
        total = sum(array.nbytes for array in arrays)
        made: list[int] = []
        if self._by_lane and total >= WORTH:
            if not self._out_free:
                return
            if self._out is None or self._out.size < total:
                try:
                    self._out, descriptor = Lane.made(total)
                    made = [descriptor]
                except OSError:  # no memory for it
                    self._by_lane = False
        self._held = None
        if self._by_lane and self._out is not None and total >= WORTH:
            self._out.write(arrays)
            self._out_free = False
            self._put(_IN_LANE, [head, note], self._out.size if made else 0, made)
        else:
            self._put(_INLINE, [head, note])
            self._queue.extend((a.reshape(-1).view(np.uint8).data, []) for a in arrays if a.size)

    def _put(self, way: int, text: Any, lane: int = 0, descriptors: Sequence[int] = ()) -> None:
        packed = msgpack.packb(text)
        start = _START.pack(len(packed), way, lane)
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
        """Read one after the other: yield True after each, False where it has to be waited."""
        while True:
            start, descriptors = bytearray(_START.size), list[int]()
            yield from self._fill(memoryview(start), descriptors)
            length, way, lane = _START.unpack(start)
            text = bytearray(length)
            yield from self._fill(memoryview(text))
            if lane:
                self._in = Lane(descriptors.pop(), lane)
            if way == _LANE_IS_READ:
                self._out_free = True
                yield True
                continue
            content = msgpack.unpackb(text)
            found, note = content
            while self._expected is None and found[3] != "end":
                yield False
            head, arrays = self._expected or ((*found[:3], ""), ())
            check(found, head, note)
            if way == _IN_LANE:
                assert self._in is not None
                self._in.read(coming(note, arrays))
                self._queue.append((memoryview(_READ), []))
            else:
                for array in coming(note, arrays):
                    if array.size:
                        yield from self._fill(array.reshape(-1).view(np.uint8).data)
            self.note, self._expected = note, None
            yield True

    def _fill(self, room: memoryview, descriptors: list[int] | None = None) -> Generator[bool]:
        while room:
            try:
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


def coming(note: Any, arrays: Sequence[Array]) -> list[Array]:
    """Return those of the arrays that a note does not leave out."""
    if not isinstance(note, list):
        return list(arrays)
    return [array for array, of in zip(arrays, note, strict=True) if of is not None]


def check(found: Sequence[Any], head: Head, note: Any) -> None:
    """Raise BrokenGangError unless a message is the one expected."""
    if tuple(found[:2]) == head[:2] and found[3] == "end":
        raise BrokenGangError(str(note))
    if tuple(found) != head:
        raise BrokenGangError(f"it sent {tuple(found)} where {head} was expected")
