from __future__ import annotations

import gc
import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from distributed.security import Security

from daskdl.collective.transport import connecting
from daskdl.collective.transport.comm import CommTransport
from daskdl.collective.transport.shared_memory import SharedMemory
from tests.daskdl.collective.pairs import Pair, pair


@pytest.fixture(scope="module")
def workers() -> Iterator[Pair]:
    with pair("tcp") as workers:
        yield workers


def exchanged(workers: Pair) -> tuple[bool, ...]:
    """Exchange something large both ways, and return which sockets are on one machine."""
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
def test_others_do_not(workers: Pair, monkeypatch, reason: str) -> None:
    if reason == "another machine":
        addresses = iter([b"\0daskdl-here", b"\0daskdl-there"])
        monkeypatch.setattr(connecting, "_address", lambda name: next(addresses))
    elif reason == "another user":
        monkeypatch.setattr(connecting, "_of_same_user", lambda near: near.close())
    else:
        monkeypatch.setattr(connecting, "_accepted", lambda listener: None)
    assert exchanged(workers) == (False, False)


@pytest.mark.slow
def test_what_is_encrypted_stays_so() -> None:
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
    assert len(os.listdir("/proc/self/fd")) < before + 20  # Dask's own come and go


def open_descriptors() -> int:
    """Return how many descriptors of shared memory this process has; other threads have others."""
    links = (file for file in Path("/proc/self/fd").iterdir() if file.is_symlink())
    return sum(os.path.realpath(link).startswith("/memfd:daskdl") for link in links)


def test_what_one_writes_the_other_reads() -> None:
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


def test_without_memory_nothing_stays_open(monkeypatch) -> None:
    def full(*_: int) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(os, "posix_fallocate", full)
    before = open_descriptors()
    with pytest.raises(OSError, match="no space left"):
        SharedMemory.made(100)
    assert open_descriptors() == before
