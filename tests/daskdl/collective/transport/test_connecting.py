"""Connections between members, and plain sockets under them."""

from __future__ import annotations

import gc
import os
import select
import socket
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from distributed.security import Security

from daskdl.collective.transport import connecting, shared_memory
from daskdl.collective.transport.comm import BrokenGangError, CommTransport
from daskdl.collective.transport.plain_socket import PeerSocket
from daskdl.collective.transport.shared_memory import SharedMemory
from tests.daskdl.collective.pairs import Pair, pair


@pytest.fixture(scope="module")
def workers() -> Iterator[Pair]:
    with pair("tcp") as workers:
        yield workers


def exchanged(workers: Pair) -> tuple[bool, ...]:
    """Exchange large arrays both ways; return for each socket whether it is a local one."""
    both = workers.opened(uuid.uuid4().hex)
    near = tuple(s._unix for e in both for s in e._transport._sockets.values())
    sent = [np.full(100_000, rank, np.float32) for rank in range(2)]
    room = [np.full(100_000, 9, np.float32) for _ in range(2)]

    def swap(rank: int) -> None:
        peer = 1 - rank
        both[rank].swap(0, "reduce", {peer: (0, [sent[rank]])}, {peer: lambda note: [room[rank]]})
        both[rank].close()

    list(workers.threads.map(swap, range(2)))
    assert (room[0] == 1).all()
    assert (room[1] == 0).all()
    return near


def test_workers_of_one_machine_share_memory(workers: Pair) -> None:
    assert exchanged(workers) == (True, True)


@pytest.mark.parametrize("reason", ["another machine", "another user", "another user comes first"])
def test_other_workers_do_not_share_memory(workers: Pair, monkeypatch, reason: str) -> None:
    if reason == "another machine":
        addresses = iter([b"\0daskdl-here", b"\0daskdl-there"])
        monkeypatch.setattr(connecting, "_address", lambda name: next(addresses))
    elif reason == "another user":
        monkeypatch.setattr(connecting, "_of_same_user", lambda near: near.close())
    else:
        monkeypatch.setattr(connecting, "_accepted", lambda listener: None)
    assert exchanged(workers) == (False, False)


@pytest.mark.slow
def test_encrypted_workers_keep_their_encryption() -> None:
    pytest.importorskip("cryptography")
    with pair("tls", Security.temporary()) as workers:
        for exchange in workers.opened(uuid.uuid4().hex):
            assert isinstance(exchange._transport, CommTransport)
            for comm in exchange._transport._comms.values():
                assert comm.peer_address.startswith("tls://")
            exchange.close()


@pytest.mark.slow
def test_nothing_stays_open(workers: Pair) -> None:
    exchanged(workers)
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        exchanged(workers)
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) < before + 20  # Dask opens and closes some of its own


def open_descriptors() -> int:
    """Count the descriptors of shared memory only: other threads open other files."""
    links = (file for file in Path("/proc/self/fd").iterdir() if file.is_symlink())
    return sum(os.path.realpath(link).startswith("/memfd:daskdl") for link in links)


def test_one_memory_reads_what_the_other_writes() -> None:
    one, descriptor = SharedMemory.made(100)
    other = SharedMemory(descriptor, 100)
    one.write([np.arange(5, dtype=np.float32), np.array([7, 8], np.uint16)])
    few, more = np.zeros(5, np.float32), np.zeros(2, np.uint16)
    other.read([few, more])
    np.testing.assert_array_equal(few, np.arange(5))
    np.testing.assert_array_equal(more, [7, 8])
    assert one.size == other.size == 100


def test_descriptors_are_closed_and_no_file_has_a_name() -> None:
    before = set(os.listdir("/dev/shm")), open_descriptors()
    memory, descriptor = SharedMemory.made(1 << 20)
    named = set(os.listdir("/dev/shm")) - before[0]
    assert not any("daskdl" in name for name in named)
    SharedMemory(descriptor, 1 << 20)
    del memory
    assert open_descriptors() <= before[1] + 1  # mmap keeps one of its own


def test_a_failed_allocation_leaves_nothing_open(monkeypatch) -> None:
    def full(*_: int) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(os, "posix_fallocate", full)
    before = open_descriptors()
    with pytest.raises(OSError, match="no space left"):
        SharedMemory.made(100)
    assert open_descriptors() == before


HEAD = ("run", 0)


def tcp() -> tuple[socket.socket, socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        one = socket.create_connection(server.getsockname())
        return one, server.accept()[0]


@pytest.fixture(params=["near", "tcp"])
def links(request: pytest.FixtureRequest) -> Iterator[list[PeerSocket]]:
    links = [PeerSocket(s) for s in (socket.socketpair() if request.param == "near" else tcp())]
    yield links
    for link in links:
        link.close()


def done(link: PeerSocket, seconds: float = 20) -> Any:
    """Send and receive a socket's open messages; return the note."""
    while True:
        link.go_on()
        if not (link.sends or link.receives):
            return link.note
        poll = select.poll()
        poll.register(link, select.POLLIN * link.reads | select.POLLOUT * link.writes)
        assert poll.poll(1000 * seconds), "stuck"


def test_messages_of_any_size_cross_and_keep_their_order(links: list[PeerSocket]) -> None:
    rng = np.random.default_rng(0)
    # The senders of each round and their sizes: below and above the size that goes through memory.
    rounds = [
        (rng.integers(1, 4), rng.integers(0, 3 * shared_memory.WORTH // 4, 2).tolist())
        for _ in range(60)
    ]

    def member(me: int) -> None:
        link = links[me]
        for t, (who, sizes) in enumerate(rounds):
            room = np.zeros((sizes[1 - me], 1), np.float32)
            if who & (1 << me):
                link.send((*HEAD, t, "k"), [me, 3], [np.full(sizes[me], t, np.float32)] * 2)
            if who & (2 >> me):
                places = [room, np.zeros(len(room), np.float32)]
                link.receive((*HEAD, t, "k"), lambda note, places=places: places)
            note = done(link)
            if who & (2 >> me):
                assert note == [1 - me, 3]
                assert (room == t).all()
        link.close()  # the other may still confirm what it reads later

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(member, range(2)))


def test_without_memory_to_share_the_socket_carries_all(
    links: list[PeerSocket], monkeypatch
) -> None:
    def full(size: int) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(shared_memory.SharedMemory, "made", full)
    sent, room = np.arange(1 << 20, dtype=np.float32), np.zeros(1 << 20, np.float32)
    with ThreadPoolExecutor(2) as threads:
        for t in range(2):
            links[0].send((*HEAD, t, "k"), t, [sent])
            links[1].receive((*HEAD, t, "k"), lambda note: [room])
            sending = threads.submit(done, links[0])
            assert done(links[1]) == t
            sending.result(20)
            np.testing.assert_array_equal(room, sent)


def test_shared_memory_is_not_written_before_it_is_read(links: list[PeerSocket]) -> None:
    if not links[0]._shares:
        pytest.skip("sockets of two machines share no memory")
    first, second = (
        np.full((2, shared_memory.WORTH), 1, np.float32),
        np.full((2, shared_memory.WORTH), 2, np.float32),
    )
    links[0].send((*HEAD, 0, "k"), 0, [first])
    done(links[0])
    links[0].send((*HEAD, 1, "k"), 0, [second])
    links[0].go_on()
    assert links[0].sends
    room = np.zeros_like(first)
    links[1].receive((*HEAD, 0, "k"), lambda note: [room])
    done(links[1])
    assert (room == 1).all()
    done(links[0])
    links[1].receive((*HEAD, 1, "k"), lambda note: [room])
    done(links[1])
    assert (room == 2).all()


def test_a_sender_hears_the_reason_of_its_peer(links: list[PeerSocket]) -> None:
    large = np.zeros(1 << 22, np.float32)
    links[0]._shares = False
    links[0].send((*HEAD, 3, "k"), 0, [large])
    links[0].go_on()
    links[1].end(*HEAD, "a mistake")
    if links[1]._unix:  # a TCP socket closed with unread data drops what it sent
        links[1].close()
    else:
        links[0].receive((*HEAD, 3, "k"), lambda note: [])
    with pytest.raises(BrokenGangError, match="a mistake"):
        done(links[0])


def test_no_reason_is_sent_inside_a_message(links: list[PeerSocket]) -> None:
    links[0]._shares = False
    links[0].send((*HEAD, 3, "k"), 0, [np.zeros(1 << 22, np.float32)])
    links[0].go_on()
    assert links[0].writes
    links[0].end(*HEAD, "a mistake")
    links[0].close()
    links[1].receive((*HEAD, 3, "k"), lambda note: [np.zeros(1 << 22, np.float32)])
    with pytest.raises(ConnectionError, match=r"closed|reset"):
        done(links[1])
