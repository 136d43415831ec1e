"""The socket of a plain TCP connection: checked in distributed 2025.1.0, 2026.8.0, tornado 6.5."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

from distributed.comm.tcp import TCP
from tornado.iostream import IOStream, StreamClosedError

if TYPE_CHECKING:
    from distributed.comm import Comm


def is_plain_tcp(comm: Comm) -> bool:
    """Return whether a connection is plain TCP, without TLS."""
    return type(comm) is TCP and type(comm.stream) is IOStream


def stream_of(comm: Comm) -> IOStream:
    """Return the stream of a plain TCP connection.

    Raises StreamClosedError when the connection is closed.
    """
    if comm.stream is None:
        raise StreamClosedError
    return comm.stream


def take_socket(stream: IOStream) -> socket.socket:
    """Return the socket of a stream, and remove it from the event loop."""
    stream.io_loop.remove_handler(stream.fileno())
    duplicate: socket.socket = stream.socket.dup()
    duplicate.setblocking(False)
    return duplicate
