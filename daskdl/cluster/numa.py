"""Numa: the nodes of this machine, each some cores with memory of their own."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

#: Folder in which Linux lists the nodes.
NODES = Path("/sys/devices/system/node")


def nodes(folder: Path = NODES) -> list[list[int]]:
    """Return for each node those of its cores that this process may run on.

    Nodes without any are left out. Where the system does not tell, all cores are one node.
    """
    allowed = _allowed()
    found = []
    for path in sorted(folder.glob("node[0-9]*/cpulist"), key=lambda p: int(p.parent.name[4:])):
        cores = sorted(allowed & set(_cores(path.read_text())))
        if cores:
            found.append(cores)
    return found or [sorted(allowed)]


def keep_to(cores: list[int]) -> None:
    """Let all threads of this process, and those to come, run on these cores only."""
    for thread in os.listdir("/proc/self/task"):
        os.sched_setaffinity(int(thread), cores)


def keeping(cores: list[list[int]]) -> Any:
    """Return a plugin that keeps each worker of "local" to a node, by its number."""
    from distributed import WorkerPlugin

    class KeepToNode(WorkerPlugin):
        name = "daskdl-numa"

        def setup(self, worker: Any) -> None:
            keep_to(cores[int(worker.name) % len(cores)])

    return KeepToNode()


def _allowed() -> set[int]:
    if hasattr(os, "sched_getaffinity"):
        return set(os.sched_getaffinity(0))
    return set(range(os.cpu_count() or 1))


def _cores(text: str) -> list[int]:
    """Return the numbers of a list such as 0-3,8-11."""
    cores: list[int] = []
    for part in text.strip().split(","):
        if part:
            first, _, last = part.partition("-")
            cores += range(int(first), int(last or first) + 1)
    return cores
