"""Ranks in this process: over socket pairs without Dask, or at two workers of a cluster."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from distributed import Client
from distributed.security import Security

from daskdl.collective.communicator import Communicator
from daskdl.collective.exchange import Exchange
from daskdl.collective.rendezvous import Rendezvous
from daskdl.collective.transport.plain_socket import PeerSocket, SocketTransport
from daskdl.train.gang.members import Gang
from tests.daskdl.clusters import small


def over_sockets(
    owners: Sequence[int],
    function: Callable[[Communicator], Any],
    patience: float = 20.0,
    buckets: int = 1,
) -> list[Any]:
    """Run a function on every rank, a thread each, with socket pairs between them.

    Returns
    -------
    list
        The results by rank; the error of a rank is raised.
    """
    addresses = tuple(f"rank-{r}" for r in range(max(owners) + 1))
    group = Gang("g", addresses, tuple(owners), patience, buckets)
    sockets: list[dict[int, PeerSocket]] = [{} for _ in addresses]
    for rank in range(len(addresses)):
        for peer in group.plan(rank).peers:
            if peer not in sockets[rank]:
                one, other = socket.socketpair()
                sockets[rank][peer], sockets[peer][rank] = PeerSocket(one), PeerSocket(other)

    def run(rank: int) -> Any:
        names = {peer: group.name(peer) for peer in sockets[rank]}
        transport = SocketTransport(sockets[rank], patience, lambda: exchange._ended())
        exchange = Exchange("run", 0, names, transport, patience)
        comm = Communicator(group, rank, exchange)
        try:
            result = function(comm)
        except BaseException as error:
            comm.close(f"{type(error).__name__}: {error}")
            raise
        comm.close()
        return result

    with ThreadPoolExecutor(len(addresses)) as threads:
        return list(threads.map(run, range(len(addresses))))


class Pair:
    """The rendezvous of two workers, and exchanges between them."""

    def __init__(self, rendezvous: list[Rendezvous]) -> None:
        self.rendezvous = rendezvous
        self.addresses = {rank: r.worker.address for rank, r in enumerate(rendezvous)}
        self.threads = ThreadPoolExecutor(2)

    def open(
        self, rank: int, run: str, attempt: int = 0, patience: float = 20.0, peer: str = ""
    ) -> Exchange:
        """Return a rank's exchange with the other rank, or with a peer at the address ``peer``."""
        peers = {r: peer or a for r, a in self.addresses.items() if r != rank}
        names = {r: f"worker {r}" for r in peers}
        return Exchange.open(self.rendezvous[rank], run, attempt, rank, peers, names, patience)

    def opened(self, run: str, attempt: int = 0, patience: float = 20.0) -> list[Exchange]:
        """Return two connected exchanges."""
        opening = [
            self.threads.submit(self.open, rank, run, attempt, patience) for rank in range(2)
        ]
        return [each.result(30) for each in opening]


@contextmanager
def pair(protocol: str, security: Security | None = None) -> Iterator[Pair]:
    """Start two workers that speak ``protocol``, with certificates if it is "tls"."""
    with (
        small(2, threads_per_worker=None, protocol=protocol, security=security) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        client.register_plugin(Rendezvous())
        workers = [cluster.workers[i] for i in sorted(cluster.workers)]
        yield Pair([worker.plugins[Rendezvous.name] for worker in workers])
