from __future__ import annotations

import select
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from daskdl.collective.errors import BrokenGangError
from daskdl.collective.transport import shared_memory
from daskdl.collective.transport.plain_socket import PeerSocket

HEAD = ("run", 0)


def tcp() -> tuple[socket.socket, socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        one = socket.create_connection(server.getsockname())
        return one, server.accept()[0]


@pytest.fixture(params=["near", "tcp"])
def ends(request: pytest.FixtureRequest) -> Iterator[list[PeerSocket]]:
    links = [PeerSocket(s) for s in (socket.socketpair() if request.param == "near" else tcp())]
    yield links
    for link in links:
        link.close()


def done(link: PeerSocket, seconds: float = 20) -> Any:
    """Carry a socket's messages to their end, and return the note."""
    while True:
        link.go_on()
        if not (link.sends or link.receives):
            return link.note
        poll = select.poll()
        poll.register(link, select.POLLIN * link.reads | select.POLLOUT * link.writes)
        assert poll.poll(1000 * seconds), "stuck"


def test_messages_of_any_size_cross_and_keep_their_order(ends: list[PeerSocket]) -> None:
    rng = np.random.default_rng(0)
    # Who sends in each round, and how much: below and above what goes through shared memory.
    rounds = [
        (rng.integers(1, 4), rng.integers(0, 3 * shared_memory.WORTH // 4, 2).tolist())
        for _ in range(60)
    ]

    def member(me: int) -> None:
        link = ends[me]
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
        link.close()  # the other may confirm what it reads after that

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(member, range(2)))


def test_without_memory_to_share_the_socket_carries_all(
    ends: list[PeerSocket], monkeypatch
) -> None:
    def full(size: int) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(shared_memory.SharedMemory, "made", full)
    sent, room = np.arange(1 << 20, dtype=np.float32), np.zeros(1 << 20, np.float32)
    with ThreadPoolExecutor(2) as threads:
        for t in range(2):
            ends[0].send((*HEAD, t, "k"), t, [sent])
            ends[1].receive((*HEAD, t, "k"), lambda note: [room])
            sending = threads.submit(done, ends[0])
            assert done(ends[1]) == t
            sending.result(20)
            np.testing.assert_array_equal(room, sent)


def test_shared_memory_is_not_written_before_it_is_read(ends: list[PeerSocket]) -> None:
    if not ends[0]._shares:
        pytest.skip("sockets of two machines share no memory")
    first, second = (
        np.full((2, shared_memory.WORTH), 1, np.float32),
        np.full((2, shared_memory.WORTH), 2, np.float32),
    )
    ends[0].send((*HEAD, 0, "k"), 0, [first])
    done(ends[0])
    ends[0].send((*HEAD, 1, "k"), 0, [second])
    ends[0].go_on()
    assert ends[0].sends
    room = np.zeros_like(first)
    ends[1].receive((*HEAD, 0, "k"), lambda note: [room])
    done(ends[1])
    assert (room == 1).all()
    done(ends[0])
    ends[1].receive((*HEAD, 1, "k"), lambda note: [room])
    done(ends[1])
    assert (room == 2).all()


def test_the_reason_is_heard_though_one_still_sends(ends: list[PeerSocket]) -> None:
    large = np.zeros(1 << 22, np.float32)
    ends[0]._shares = False
    ends[0].send((*HEAD, 3, "k"), 0, [large])
    ends[0].go_on()
    ends[1].end(*HEAD, "a mistake")
    if ends[1]._unix:  # TCP forgets what was sent before something came too late
        ends[1].close()
    else:
        ends[0].receive((*HEAD, 3, "k"), lambda note: [])
    with pytest.raises(BrokenGangError, match="a mistake"):
        done(ends[0])


def test_nothing_is_said_in_the_middle_of_a_message(ends: list[PeerSocket]) -> None:
    ends[0]._shares = False
    ends[0].send((*HEAD, 3, "k"), 0, [np.zeros(1 << 22, np.float32)])
    ends[0].go_on()
    assert ends[0].writes
    ends[0].end(*HEAD, "a mistake")
    ends[0].close()
    ends[1].receive((*HEAD, 3, "k"), lambda note: [np.zeros(1 << 22, np.float32)])
    with pytest.raises(ConnectionError, match=r"closed|reset"):
        done(ends[1])
