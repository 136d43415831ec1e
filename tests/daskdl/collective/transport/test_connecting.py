from __future__ import annotations

import gc
import os
import uuid
from collections.abc import Iterator

import numpy as np
import pytest
from distributed.security import Security

from daskdl.collective.transport import connecting
from daskdl.collective.transport.comm import CommTransport
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
