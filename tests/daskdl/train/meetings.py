"""Two workers in this process, at which members of a gang meet without tasks."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from distributed import Client, LocalCluster

from daskdl.collective.communicator import Exchange
from daskdl.collective.rendezvous import Meeting


class Pair:
    """The meetings of two workers, and exchanges between them."""

    def __init__(self, meetings: list[Meeting]) -> None:
        self.meetings = meetings
        self.addresses = {rank: m.worker.address for rank, m in enumerate(meetings)}
        self.threads = ThreadPoolExecutor(2)

    def exchange(self, rank: int, run: str, attempt: int = 0, patience: float = 20.0) -> Exchange:
        """Return a member's exchange with the other, not open yet."""
        peers = {r: a for r, a in self.addresses.items() if r != rank}
        names = {r: f"worker {r}" for r in peers}
        return Exchange(self.meetings[rank], run, attempt, rank, peers, names, patience)

    def opened(self, run: str, attempt: int = 0, patience: float = 20.0) -> list[Exchange]:
        """Return two that are connected."""
        both = [self.exchange(rank, run, attempt, patience) for rank in range(2)]
        for opening in [self.threads.submit(e.open) for e in both]:
            opening.result(30)
        return both


@contextmanager
def pair(protocol: str) -> Iterator[Pair]:
    """Start two workers that speak ``protocol``."""
    with (
        LocalCluster(
            n_workers=2,
            processes=False,
            protocol=protocol,
            dashboard_address="127.0.0.1:0",
            scheduler_kwargs={"dashboard": False},
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        client.register_plugin(Meeting())
        workers = [cluster.workers[i] for i in sorted(cluster.workers)]
        yield Pair([worker.plugins[Meeting.name] for worker in workers])
