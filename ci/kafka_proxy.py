"""A proxy before a Kafka broker: it drops connections when told to, and speaks TLS if wanted.

A broker tells clients its own address, past which they would go to it. The proxy puts its own port
into what the broker answers, which has the same length.
"""

from __future__ import annotations

import socket
import ssl
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

HOST = "127.0.0.1"


class Proxy:
    """A server on the loopback interface that hands everything on to a broker's port.

    Parameters
    ----------
    target : int
        Port of the broker.
    tls : ssl.SSLContext, optional
        With the certificate that clients see; what is sent to the broker is in clear.
    """

    def __init__(self, target: int, tls: ssl.SSLContext | None = None) -> None:
        self._target, self._tls = target, tls
        self._server = socket.create_server((HOST, 0))
        self.port = self._server.getsockname()[1]
        self.servers = f"{HOST}:{self.port}"
        self._lock, self._open = threading.Lock(), set[socket.socket]()
        #: Connections taken and cut, and bytes in each direction.
        self.taken, self.dropped, self.bytes = 0, 0, [0, 0]
        #: Whether new connections are ended at once.
        self.refuses = False
        threading.Thread(target=self._accept, name="proxy", daemon=True).start()

    def drop(self) -> int:
        """Cut all connections at once; return how many clients had."""
        with self._lock:
            ends, self._open = self._open, set()
        for end in ends:
            with suppress(OSError):  # a reset, as from a firewall that forgets
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                end.shutdown(socket.SHUT_RDWR)
        self.dropped += len(ends) // 2
        return len(ends) // 2

    def close(self) -> None:
        """Take no more connections, and cut those that are there."""
        self._server.close()
        self.drop()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._server.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(near,), daemon=True).start()

    def _serve(self, near: socket.socket) -> None:
        with suppress(OSError):
            if self.refuses:
                near.close()
                return
            if self._tls is not None:
                near = self._tls.wrap_socket(near, server_side=True)
            far = socket.create_connection((HOST, self._target), 10)
            far.settimeout(None)
            with self._lock:
                self._open |= {near, far}
                self.taken += 1
            threading.Thread(target=self._requests, args=(near, far), daemon=True).start()
            self._answers(near, far)

    def _requests(self, near: socket.socket, far: socket.socket) -> None:
        with self._both(near, far):
            while data := near.recv(1 << 16):
                self.bytes[0] += len(data)
                far.sendall(data)

    def _answers(self, near: socket.socket, far: socket.socket) -> None:
        own, theirs = (HOST.encode() + struct.pack(">i", p) for p in (self.port, self._target))
        with self._both(near, far), far.makefile("rb") as stream:
            while size := stream.read(4):
                answer = stream.read(struct.unpack(">i", size)[0])
                self.bytes[1] += len(answer)
                near.sendall(size + answer.replace(theirs, own))

    @contextmanager
    def _both(self, near: socket.socket, far: socket.socket) -> Iterator[None]:
        """Close both ends when one has ended."""
        with suppress(OSError, ValueError, struct.error):
            yield
        with self._lock:
            self._open -= {near, far}
        for end in (near, far):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


@contextmanager
def proxy(target: int, tls: ssl.SSLContext | None = None) -> Iterator[Proxy]:
    """Give a proxy that runs; it is closed on leaving."""
    made = Proxy(target, tls)
    try:
        yield made
    finally:
        made.close()
