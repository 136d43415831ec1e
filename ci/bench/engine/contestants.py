"""Contestants of the engines' benchmarks: gloo, and fits of a single vector."""

from __future__ import annotations

import multiprocessing
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from distributed import Client

from daskdl.data import SampleSet
from daskdl.nn import MSELoss
from daskdl.optim import SGD
from daskdl.scaling.workloads import Waiting
from daskdl.train import History, Trainer

#: One exchange, by one process.
Step = Callable[[], None]


class Pair:
    """Two processes that run a peer's exchange on request."""

    def __init__(self, make: Callable[[int, int, int], Step], port: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipes = []
        self._processes = []
        for rank in range(2):
            here, there = context.Pipe()
            process = context.Process(target=_serve, args=(make, rank, port, there), daemon=True)
            process.start()
            self._pipes.append(here)
            self._processes.append(process)

    def times(self, n_bytes: int, calls: int) -> list[float]:
        """Return the milliseconds of each of ``calls`` exchanges of a vector."""
        for pipe in self._pipes:
            pipe.send((n_bytes, calls))
        durations = [pipe.recv() for pipe in self._pipes]
        return [max(both) for both in zip(*durations, strict=True)]

    def close(self) -> None:
        """End both processes."""
        for pipe in self._pipes:
            pipe.send(None)
        for process in self._processes:
            process.join(10)


def gloo(rank: int, port: int, n_bytes: int) -> Step:
    """Return PyTorch's all_reduce of a vector over gloo."""
    import torch
    from torch import distributed

    torch.set_num_threads(1)
    if not distributed.is_initialized():
        address = f"tcp://127.0.0.1:{port}"
        distributed.init_process_group("gloo", init_method=address, rank=rank, world_size=2)
    vector = torch.zeros(n_bytes // 4)

    def step() -> None:
        distributed.all_reduce(vector)

    return step


def _serve(make: Callable[[int, int, int], Step], rank: int, port: int, pipe: Any) -> None:
    os.environ["OMP_NUM_THREADS"] = "1"
    steps: dict[int, Step] = {}
    while (asked := pipe.recv()) is not None:
        n_bytes, calls = asked
        if n_bytes not in steps:
            steps[n_bytes] = make(rank, port, n_bytes)
            steps[n_bytes]()
        step, times = steps[n_bytes], []
        small = make(rank, port, 4) if 4 not in steps else steps[4]
        steps[4] = small
        for _ in range(calls):
            small()  # wait until both processes are ready
            began = time.perf_counter()
            step()
            times.append(1000 * (time.perf_counter() - began))
        pipe.send(times)


def free_port() -> int:
    """Return a port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def fitted(n_bytes: int, shards: int, iterations: int, **options: Any) -> History:
    """Return the history of a fit of ``iterations`` iterations."""
    x = np.ones((8 * shards, 4), np.float32)
    samples = SampleSet.from_arrays(x=x, y=x, partitions=shards)
    trainer = Trainer(Waiting(n_bytes // 4), MSELoss(), SGD(0.01))
    options = {"batch_size": 2 * shards, "progress": False, **options}
    return trainer.fit(samples, iterations=iterations, **options)


@contextmanager
def apart(client: Client) -> Iterator[None]:
    """Keep workers from seeing that they are on one machine."""

    def replace(reached: Any) -> Any:
        from daskdl.collective.transport import connecting as linking

        before, linking._reached = linking._reached, reached or (lambda name: None)
        return before

    before = client.run(replace, None)
    try:
        yield
    finally:
        client.run(replace, next(iter(before.values())))


def synchronization(history: History, skip: int = 2) -> list[float]:
    """Return for each iteration after the first ``skip`` the milliseconds without computation.

    For the gang engine these are its two exchanges and the gaps between the phases.
    """
    compute = sum(history[name] for name in ("data", "forward", "backward", "update"))
    return (1000 * (history["seconds"] - compute))[skip:].tolist()


def exchanges(history: History, skip: int = 2) -> list[float]:
    """Return for each iteration after the first ``skip`` the milliseconds of a gang's exchanges."""
    return (1000 * (history["reduce"] + history["broadcast"]))[skip:].tolist()
