"""From a connection of Dask's to a plain socket, on one machine to one with shared memory."""

from __future__ import annotations

import asyncio
import os
import socket
import struct
import uuid
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING

from daskdl.collective.transport.plain_socket import PeerSocket
from daskdl.compat.dask import stream_of, take_socket

if TYPE_CHECKING:
    from distributed.comm import Comm

_NAME = 32
_YES, _NO = b"1", b"0"
_CREDENTIALS = struct.Struct("3i")  # process, user, group


async def plain_socket(comm: Comm, connects: bool) -> PeerSocket:
    """Return the socket that replaces a connection; ``connects`` at the end that connected.

    Both ends call this. The one that connected listens on a Unix socket and sends its name to the
    other, which tries to connect. That succeeds only on the same machine and in the same network
    namespace, and the kernel identifies each end to the other. Otherwise the socket of the TCP
    connection is taken from the event loop.

    Raises
    ------
    OSError
        When the peer is lost.
    """
    stream = stream_of(comm)
    # Until one end has taken the stream from its event loop the other sends nothing: the loop would
    # read it.
    with ExitStack() as cleanup:
        if connects:
            listener = cleanup.enter_context(closing(socket.socket(socket.AF_UNIX)))
            name = uuid.uuid4().hex.encode()
            listener.bind(_address(name))
            listener.listen(1)
            listener.setblocking(False)
            tcp = cleanup.enter_context(closing(take_socket(stream)))
            await _send(tcp, name)
            near = _accepted(listener) if await _receive(tcp) == _YES else None
            cleanup.callback(_close, near)
            await _send(tcp, _NO if near is None else _YES)
        else:
            name = await stream.read_bytes(_NAME)
            tcp = cleanup.enter_context(closing(take_socket(stream)))
            near = _reached(name)
            cleanup.callback(_close, near)
            await _send(tcp, _NO if near is None else _YES)
            if await _receive(tcp) == _NO:
                near = None
        return PeerSocket((tcp if near is None else near).dup())


def _close(near: socket.socket | None) -> None:
    if near is not None:
        near.close()


def _address(name: bytes) -> bytes:
    return b"\0daskdl-" + name  # of no file: it goes with the socket


def _accepted(listener: socket.socket) -> socket.socket | None:
    try:
        return _of_same_user(listener.accept()[0])
    except OSError:
        return None


def _reached(name: bytes) -> socket.socket | None:
    near = socket.socket(socket.AF_UNIX)
    near.setblocking(False)
    try:
        near.connect(_address(name))
    except OSError:
        near.close()
        return None
    return _of_same_user(near)


def _of_same_user(near: socket.socket) -> socket.socket | None:
    credentials = near.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    if _CREDENTIALS.unpack(credentials)[1] == os.geteuid():
        return near
    near.close()
    return None


async def _send(tcp: socket.socket, data: bytes) -> None:
    await asyncio.get_running_loop().sock_sendall(tcp, data)


async def _receive(tcp: socket.socket) -> bytes:
    answer = await asyncio.get_running_loop().sock_recv(tcp, 1)
    if not answer:
        raise ConnectionResetError("it has closed the connection")
    return answer
