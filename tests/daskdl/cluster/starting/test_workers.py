"""Started workers: Ctrl-C, their cores, memory settings and the profiler."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import dask
import pytest

from daskdl.cluster import connect
from daskdl.cluster.starting import workers as numa
from daskdl.cluster.starting.workers import interrupts_later, undisturbed
from tests.daskdl.clusters import SPAWN, small


@pytest.mark.parametrize("with_another_thread", [False, True])
def test_an_interruption_comes_at_the_end(with_another_thread: bool) -> None:
    came, over = [], threading.Event()
    other = threading.Thread(target=over.wait)
    if with_another_thread:  # which lets signals through
        other.start()

    def interrupted() -> None:
        with interrupts_later():
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.1)
            came.append("work")
        came.append("more")

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # another may be set
    try:
        with pytest.raises(KeyboardInterrupt):
            interrupted()
    finally:
        signal.signal(signal.SIGINT, before)
        over.set()
    assert came == ["work"]
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


def test_processes_that_start_in_the_block_are_not_interrupted() -> None:
    with interrupts_later():
        process = subprocess.Popen(
            [sys.executable, "-c", "print(1, flush=True); input()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
    assert process.stdout is not None
    assert process.stdout.readline() == b"1\n"
    process.send_signal(signal.SIGINT)
    process.communicate(b"\n", timeout=60)
    assert process.returncode == 0


HERE = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
needs_linux = pytest.mark.skipif(len(HERE) < 2, reason="needs Linux and two cores")


def machine(folder: Path, *lists: str) -> Path:
    for number, text in enumerate(lists):
        (folder / f"node{number}").mkdir()
        (folder / f"node{number}" / "cpulist").write_text(f"{text}\n")
    return folder


@pytest.mark.parametrize(
    ("lists", "cores"),
    [
        (["0-3,8-11", "4-7,12-15"], [[0, 1, 2, 3, 8, 9, 10, 11], [4, 5, 6, 7, 12, 13, 14, 15]]),
        (["0", "", "5"], [[0], [5]]),  # the second has memory only
        (["0-2,40", "41"], [[0, 1, 2]]),  # some are not for this process
        ([], [list(range(16))]),
    ],
)
def test_nodes_have_the_cores_that_this_process_may_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lists: list[str], cores: list[list[int]]
) -> None:
    monkeypatch.setattr(numa, "_allowed", lambda: set(range(16)))
    assert numa.nodes(machine(tmp_path, *lists)) == cores


def test_the_nodes_of_this_machine_have_all_its_cores() -> None:
    cores = [core for node in numa.nodes() for core in node]
    assert sorted(cores) == sorted(numa._allowed())


@pytest.mark.slow
@needs_linux
def test_local_workers_keep_to_their_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    from daskdl.cluster import connection as cluster

    monkeypatch.setattr(cluster, "nodes", lambda: [HERE[:1], HERE[1:2]])

    def where() -> list[list[int]]:
        threads = os.listdir("/proc/self/task")
        return [sorted(os.sched_getaffinity(int(thread))) for thread in threads]

    with dask.config.set(SPAWN), cluster.connect("local", threads_per_worker="numa") as client:
        assert list(client.nthreads().values()) == [1, 1]
        nodes = [sorted(map(list, {tuple(c) for c in w})) for w in client.run(where).values()]
    assert sorted(nodes) == [[HERE[:1]], [HERE[1:2]]]


def looks(client):
    """Return how often the profiler has looked at a task that takes a second."""
    client.submit(time.sleep, 1, pure=False).result()
    (count,) = client.run(lambda dask_worker: _count(dask_worker)).values()
    return count


def _count(worker):
    return worker.profile_recent["count"] + sum(p["count"] for _, p in worker.profile_history)


@pytest.fixture(scope="module")
def local():
    with dask.config.set(SPAWN), connect("local", workers=1) as client:
        yield client


@pytest.mark.slow
def test_malloc_is_set_before_the_first_task(local):  # its imports allocate much
    assert list(local.run(lambda: "daskdl.kernels.runtime.memory" in sys.modules).values()) == [
        True
    ]


@pytest.mark.slow
def test_the_profiler_leaves_the_threads_alone(local):
    assert looks(local) <= 2


def test_a_profiler_that_looks_rarely_or_never_is_left_alone():
    for settings, expected in (({"interval": "5 s"}, 5000), ({"enabled": False}, None)):
        config = {f"distributed.worker.profile.{name}": value for name, value in settings.items()}
        with dask.config.set(config), small() as cluster, cluster.get_client() as client:
            client.register_plugin(undisturbed())
            (profiler,) = (w.periodic_callbacks.get("profile") for w in cluster.workers.values())
            assert (profiler and profiler.callback_time) == expected
