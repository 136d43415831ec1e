"""Throughput of predictions beside a plain loop of model(x): python -m ci.bench.predict.

In process, and on a Dask Array with two workers of one thread each; samples of a small network of
affine layers (100-256-256-10) and of a convolutional one (32 x 32 x 3). Every contestant computes
the same samples in turns; the minima count, by which what others do on the machine matters least.

With ``--memory``: the most that a process has held, by its operating system, that evaluated 4, 16
and 64 partitions of 16 MB, and what a worker has held that did.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

from ci.bench.timing import Case, race
from daskdl.data import SampleSet
from daskdl.data.arrays import Arrays
from daskdl.data.recipe import Excerpt
from daskdl.kernels.runtime.threads import thread_budget
from daskdl.metrics import MeanSquaredError
from daskdl.nn import Conv2d, Flatten, Linear, MaxPool2d, Module, ReLU, Sequential
from daskdl.tensor import no_grad

PARTITIONS = 16
#: A cluster without a dashboard.
QUIET: dict[str, Any] = {
    "dashboard_address": "127.0.0.1:0",
    "scheduler_kwargs": {"dashboard": False},
}


def affine() -> Module:
    """Return a network of affine layers."""
    return Sequential(Linear(100, 256), ReLU(), Linear(256, 256), ReLU(), Linear(256, 10))


def convolutional() -> Module:
    """Return a network for small images."""
    return Sequential(
        Conv2d(3, 32, 3, padding="same"),
        ReLU(),
        MaxPool2d(2),
        Conv2d(32, 64, 3, padding="same"),
        ReLU(),
        MaxPool2d(2),
        Flatten(),
        Linear(64 * 64, 10),
    )


def loop(model: Module, x: Any, batch: int, threads: int) -> Callable[[], object]:
    """Return the loop over batches that one writes by hand."""

    def run() -> object:
        with thread_budget(threads), no_grad():
            return np.concatenate(
                [model.eval()(x[a : a + batch]).data for a in range(0, len(x), batch)]
            )

    return run


def report(name: str, samples: int, found: dict[str, Any]) -> None:
    """Print samples a second, and how many times as many as the loop of batches of 32."""
    slow = found["loop of 32"].least
    for kind, times in found.items():
        rate = samples / times.least * 1000
        print(f"{name:<24} {kind:<16} {rate:>10,.0f} samples/s  {slow / times.least:>6.2f}")


@dataclass(frozen=True)
class Made(Excerpt):
    """Recipe of samples of 4 kB that are made when they are loaded."""

    start: int
    stop: int

    @property
    def nbytes(self) -> int:
        """Bytes of the samples."""
        return 4096 * len(self)

    def load(self) -> Arrays:
        """Make them."""
        x = np.full((len(self), 1024), self.start, np.float32)
        return Arrays({"x": x, "y": x[:, :1]})


def resident() -> float:
    """Return the most that this process has held, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def held(partitions: int, on_cluster: bool) -> None:
    """Print what evaluating so many partitions takes, here or in a worker of a cluster."""
    samples = SampleSet([Made(4096 * i, 4096 * (i + 1)) for i in range(partitions)])
    model, metrics = Linear(1024, 1), [MeanSquaredError()]
    where = "one worker" if on_cluster else "this process"
    if on_cluster:
        with (
            LocalCluster(n_workers=1, threads_per_worker=1, **QUIET) as cluster,
            Client(cluster, set_as_default=False) as client,
        ):
            model.evaluate(SampleSet(samples.recipes[:1]), metrics, client=client)
            before = max(client.run(resident).values())
            model.evaluate(samples, metrics, client=client)
            after = max(client.run(resident).values())
    else:
        model.evaluate(SampleSet(samples.recipes[:1]), metrics, client=False)
        before = resident()
        model.evaluate(samples, metrics, client=False)
        after = resident()
    print(
        f"evaluate {partitions:>3} partitions of 16 MB in {where:<12}: at most {after:,.0f} MB, "
        f"{after - before:,.0f} MB more than for one",
        flush=True,
    )


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=1.0, help="for each contestant")
    parser.add_argument("--memory", action="store_true", help="what is held, instead of times")
    options = parser.parse_args()
    if options.memory:
        for on_cluster in (False, True):
            for partitions in (4, 16, 64):  # each in a process of its own
                new = multiprocessing.get_context("spawn").Process
                process = new(target=held, args=(partitions, on_cluster))
                process.start()
                process.join()
        return
    seconds = options.seconds
    shapes = {"affine": (131_072, 100), "convolutional": (4096, 32, 32, 3)}
    models = {"affine": affine(), "convolutional": convolutional()}
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, **QUIET) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        for name, model in models.items():
            # Made on the workers, where they stay.
            chunks = (shapes[name][0] // PARTITIONS, *shapes[name][1:])
            draw = da.random.default_rng(0).standard_normal
            lazy = client.persist(draw(shapes[name], chunks=chunks, dtype=np.float32))
            x = client.compute(lazy).result()
            for threads in (1, 2):
                loops = {f"loop of {n}": loop(model, x, n, threads) for n in (32, 1024)}
                here = Case(name, lambda m=model, x=x, t=threads: m.predict(x, threads=t), loops)
                report(f"{name}, {threads} threads", len(x), race(here, seconds, 3))
            with client.as_current():
                # The results stay on the workers, too: a sum of them comes back.
                there = Case(
                    name,
                    lambda m=model, d=lazy: m.predict(d).sum().compute(),
                    {f"loop of {n}": loop(model, x, n, 1) for n in (32, 1024)},
                )
                report(f"{name}, two workers", len(x), race(there, seconds, 3))


if __name__ == "__main__":
    main()
