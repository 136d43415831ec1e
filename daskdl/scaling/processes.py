"""Processes: clusters to measure on, many workers in few processes whose ids are known.

``python -m daskdl.scaling.processes`` runs the scheduler, ``... ADDRESS COUNT FOLDER`` a process of
workers: it prints its address, and ends when its standard input ends, so that it cannot outlive its
parent. Its CPU time can be read from outside.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import dask
import distributed

from daskdl.cluster import connect
from daskdl.cluster.connection import quiet, wait_for
from daskdl.cluster.starting.workers import CONFIG as OF_CLUSTERS
from daskdl.errors import ClusterError, SettingsError
from daskdl.kernels.runtime.threads import available_cores

if TYPE_CHECKING:
    from distributed import Client

HOST = "127.0.0.1"
#: Settings of daskdl.cluster; without profilers, since every worker of a process would run one.
CONFIG = {
    **OF_CLUSTERS,
    "distributed.worker.profile.enabled": False,
    "distributed.admin.system-monitor.interval": "10 s",
    "distributed.comm.timeouts.connect": "120 s",
    "distributed.comm.timeouts.tcp": "120 s",
}


@dataclass(frozen=True)
class Process:
    """A child process, and its CPU time."""

    id: int
    address: str

    def cpu_seconds(self) -> float:
        """Return the CPU seconds of its threads so far, with nanosecond precision."""
        total = 0
        for task in Path(f"/proc/{self.id}/task").iterdir():
            with suppress(OSError):  # a thread that has just ended
                total += int((task / "schedstat").read_text().split()[0])
        return total / 1e9


@dataclass(frozen=True)
class Processes:
    """A cluster: the scheduler, the processes that host workers, and a client of them."""

    scheduler: Process
    hosts: list[Process]
    client: distributed.Client


def all_cpu_seconds() -> float:
    """Return the CPU seconds of all processes of the machine so far, with stolen ones.

    On a busy machine the same work has taken up to three times as many CPU seconds as on a quiet
    one, since caches and cores are shared.
    """
    import psutil

    times = psutil.cpu_times()
    parts = times.user, times.nice, times.system, times.irq, times.softirq, times.steal
    return float(sum(parts))


@contextmanager
def cluster(workers: int, hosts: int) -> Iterator[Processes]:
    """Start a scheduler, and workers spread over host processes; end them on exit."""
    counts = [workers // hosts + (i < workers % hosts) for i in range(hosts)]
    with ExitStack() as stack:
        stack.enter_context(dask.config.set(CONFIG))
        folder = stack.enter_context(
            tempfile.TemporaryDirectory(prefix="daskdl-", ignore_cleanup_errors=True)
        )
        scheduler = _announced(_start(stack, []))
        started = [_start(stack, [scheduler.address, str(n), folder]) for n in counts]
        processes = [_announced(process) for process in started]
        client = stack.enter_context(
            distributed.Client(scheduler.address, set_as_default=False, timeout=60)
        )
        client.wait_for_workers(workers, timeout=120)
        yield Processes(scheduler, processes, client)


def _start(stack: ExitStack, arguments: Sequence[str]) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-m", "daskdl.scaling.processes", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "DASK_LOGGING__DISTRIBUTED": "critical"},
        start_new_session=True,  # Ctrl-C goes to the parent, which then ends this
    )
    stack.callback(_end, process)
    return process


def _announced(process: subprocess.Popen[str]) -> Process:
    assert process.stdout is not None
    address = process.stdout.readline().strip()
    if not address:
        raise ClusterError(
            "local cluster: expected a process of scheduler or workers to start, found that it "
            f"ended with code {process.wait(10)}; see what it said on standard error"
        )
    return Process(process.pid, address)


def _end(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.close()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(10)
    process.stdout.close()


# --- in such a process


async def _scheduler() -> None:
    scheduler = distributed.Scheduler(
        host=HOST, port=0, dashboard=False, dashboard_address=f"{HOST}:0"
    )
    await scheduler
    await _until_input_ends(scheduler.address)


async def _workers(address: str, count: str, folder: str) -> None:
    workers = [
        distributed.Worker(
            address,
            nthreads=1,
            host=HOST,
            memory_limit=0,
            dashboard_address=f"{HOST}:0",
            local_directory=folder,
        )
        for _ in range(int(count))
    ]
    await asyncio.gather(*workers)
    await _until_input_ends(workers[0].address)


async def _until_input_ends(address: str) -> None:
    print(address, flush=True)
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    await reader.read()
    os._exit(0)  # without cleanup: closing many workers one by one takes long


# --- in the process that measures

#: From a number of workers to a client of a cluster with as many.
ClientOf = Callable[[int], "Client"]

#: Largest number of simulated workers in one process.
TOGETHER = 32

#: Vectors of the model's size that a worker holds, about: weights, gradient, its sums, and the
#: state after the last group.
VECTORS = 8


@contextmanager
def real(cluster: str, workers: int | None, threads: int) -> Iterator[tuple[ClientOf, int]]:
    """Yield a function that returns the client for any number of workers, and their number.

    Raises SettingsError when the number of workers of a job queue is missing, and ClusterError
    when workers do not arrive.
    """
    if workers is None and cluster.endswith((".yaml", ".yml")):
        raise SettingsError(
            f"workers: expected how many of {cluster} to measure on, found none; give --workers N"
        )
    with connect(cluster, workers=workers, threads_per_worker=threads) as client:
        wait_for(client, workers or 1, "bench scaling")
        yield lambda n: client, workers or len(client.nthreads())


@contextmanager
def waiting(workers: int | None) -> Iterator[tuple[ClientOf, int]]:
    """Yield a function that starts a local cluster of simulated workers, many per process.

    It ends the cluster before, since idle workers would cost heartbeats.
    """
    with quiet(), ExitStack() as stack:
        clients: dict[int, Client] = {}

        def client_of(n: int) -> Client:
            if n not in clients:
                clients.clear()
                stack.close()
                hosts = max(min(n, available_cores()), -(-n // TOGETHER))
                clients[n] = stack.enter_context(cluster(n, hosts)).client
            return clients[n]

        yield client_of, workers or TOGETHER


def check_memory(workers: int, size: int) -> None:
    """Raise a SettingsError when models of ``size`` numbers on ``workers`` exceed the memory."""
    import psutil

    needed, free = 4 * size * VECTORS * workers, psutil.virtual_memory().available
    if needed > free:
        raise SettingsError(
            f"simulate: expected at least {needed / 1e9:.1f} GB of free memory for {workers} "
            f"workers with {4 * size / 1e6:.3g} MB of weights each, found {free / 1e9:.1f} GB; "
            "give fewer --workers or --megabytes"
        )


if __name__ == "__main__":
    with dask.config.set(CONFIG):
        asyncio.run(_workers(*sys.argv[1:]) if sys.argv[1:] else _scheduler())
