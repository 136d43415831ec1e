"""NUMA nodes, as Linux tells of them, and processes that keep to one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from daskdl.cluster import numa

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
    found = [core for cores in numa.nodes() for core in cores]
    assert sorted(found) == sorted(numa._allowed())


@needs_linux
def test_local_workers_keep_to_their_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    from daskdl.cluster import connection as cluster

    monkeypatch.setattr(cluster, "nodes", lambda: [HERE[:1], HERE[1:2]])

    def where() -> list[list[int]]:
        threads = os.listdir("/proc/self/task")
        return [sorted(os.sched_getaffinity(int(thread))) for thread in threads]

    with cluster.connect("local", threads_per_worker="numa") as client:
        assert list(client.nthreads().values()) == [1, 1]
        found = [sorted(map(list, {tuple(c) for c in w})) for w in client.run(where).values()]
    assert sorted(found) == [[HERE[:1]], [HERE[1:2]]]
