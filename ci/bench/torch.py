"""A step of a torch module on the engine beside torch's own loop, at the same threads.

``python -m ci.bench.torch``: both train the same network from the same weights, in turns; the ratio
is of the least milliseconds an iteration of all turns. With ``--ddp`` two workers of a thread each
stand beside two processes of PyTorch's DistributedDataParallel over gloo, and medians count.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Sequence
from typing import Any

import dask
import numpy as np
import torch

from ci.bench.engine_contestants import Pair, Step, free_port, gloo
from daskdl.cluster import connect
from daskdl.data import SampleSet
from daskdl.optim import SGD
from daskdl.torch import TorchModule
from daskdl.train import Trainer


def residual(width: int = 32) -> tuple[torch.nn.Module, np.ndarray[Any, Any]]:
    """Return a convolutional network and a batch of images."""

    class Block(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one = torch.nn.Conv2d(width, width, 3, padding=1, bias=False)
            self.norm = torch.nn.BatchNorm2d(width)
            self.two = torch.nn.Conv2d(width, width, 3, padding=1, bias=False)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + self.two(torch.relu(self.norm(self.one(x))))

    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, width, 3, padding=1),
        *(Block() for _ in range(4)),
        torch.nn.AdaptiveAvgPool2d(1),
        torch.nn.Flatten(),
        torch.nn.Linear(width, 10),
    )
    return net, np.random.default_rng(0).normal(size=(32, 3, 32, 32)).astype(np.float32)


def encoder(width: int = 128) -> tuple[torch.nn.Module, np.ndarray[Any, Any]]:
    """Return a Transformer encoder over sequences of vectors and a batch of these."""
    layer = torch.nn.TransformerEncoderLayer(width, 4, 4 * width, 0.0, batch_first=True)
    net = torch.nn.Sequential(
        torch.nn.TransformerEncoder(layer, 2),
        torch.nn.Flatten(),
        torch.nn.Linear(64 * width, 10),
    )
    return net, np.random.default_rng(0).normal(size=(16, 64, width)).astype(np.float32)


def bare(net: torch.nn.Module, x: Any, y: Any, iterations: int) -> float:
    """Return torch's milliseconds of an iteration."""
    optimizer = torch.optim.SGD(net.parameters(), 0.01)
    given, target = torch.from_numpy(x), torch.from_numpy(y)
    times = []
    for _ in range(iterations):
        began = time.perf_counter()
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(net(given), target).backward()
        optimizer.step()
        times.append(time.perf_counter() - began)
    return 1000 * min(times[1:])


def ours(net: torch.nn.Module, x: Any, y: Any, iterations: int) -> float:
    """Return the engine's milliseconds of an iteration, in this process."""
    trainer = Trainer(TorchModule(net), torch.nn.CrossEntropyLoss(), SGD(0.01))
    samples = SampleSet.from_arrays(x=x, y=y)
    history = trainer.fit(samples, iterations=iterations, batch_size=len(x), progress=False)
    return 1000 * float(history["seconds"][1:].min())


def distributed(rank: int, port: int, number: int) -> Step:
    """Return an iteration of one of two processes of PyTorch's DDP, each with half of the batch.

    Numbers that no network has are bytes of an all-reduce.
    """
    if number >= len(NETWORKS):
        return gloo(rank, port, number)
    from torch.nn.parallel import DistributedDataParallel

    gloo(rank, port, 4)()  # connects
    torch.manual_seed(0)
    net, x = [*NETWORKS.values()][number]()
    given = torch.from_numpy(x)[rank::2]
    target = torch.from_numpy(np.random.default_rng(1).integers(0, 10, len(x)))[rank::2]
    parallel = DistributedDataParallel(net)
    optimizer = torch.optim.SGD(parallel.parameters(), 0.01)

    def step() -> None:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(parallel(given), target).backward()
        optimizer.step()

    return step


def on_two_workers(name: str, iterations: int, client: Any) -> list[float]:
    """Return the engine's milliseconds of each iteration of a group on two workers."""
    net, x = NETWORKS[name]()
    y = np.random.default_rng(1).integers(0, 10, len(x))
    samples = SampleSet.from_arrays(x=x, y=y, partitions=2)
    trainer = Trainer(TorchModule(net), torch.nn.CrossEntropyLoss(), SGD(0.01))
    history = trainer.fit(
        samples, iterations=iterations + 2, batch_size=len(x), progress=False, client=client,
        engine="gang", threads=1,
    )  # fmt: skip
    return [1000 * float(seconds) for seconds in history["seconds"][2:]]


def beside_ddp(rounds: int, iterations: int) -> None:
    """Race two workers against two processes of DDP, and print a line for each network."""
    print(f"{'network':<10} {'DDP ms':>9} {'daskdl ms':>10} {'ratio':>9}")
    pair = Pair(distributed, free_port())
    try:
        with dask.config.set({"daskdl.group-time": "1 minute"}), connect(workers=2) as client:
            for number, name in enumerate(NETWORKS):
                theirs: list[float] = []
                own: list[float] = []
                for _ in range(rounds):
                    theirs += pair.times(number, iterations)
                    own += on_two_workers(name, iterations, client)
                one, other = statistics.median(theirs), statistics.median(own)
                print(f"{name:<10} {one:9.2f} {other:10.2f} {one / other:9.2f}", flush=True)
    finally:
        pair.stop()


NETWORKS = {"residual": residual, "encoder": encoder}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--iterations", type=int, default=15)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--ddp", action="store_true", help="two workers beside PyTorch's DDP")
    options = parser.parse_args(sys.argv[1:] if arguments is None else list(arguments))
    if options.ddp:
        beside_ddp(options.rounds, options.iterations)
        return 0
    print(f"{'network':<10} {'torch ms':>9} {'daskdl ms':>10} {'overhead':>9}")
    torch.set_num_threads(options.threads)
    with dask.config.set({"daskdl.threads": options.threads}):
        for name, make in NETWORKS.items():
            net, x = make()
            y = np.random.default_rng(1).integers(0, 10, len(x))
            found: dict[str, list[float]] = {"torch": [], "ours": []}
            for _ in range(options.rounds):
                found["torch"].append(bare(net, x, y, options.iterations))
                found["ours"].append(ours(net, x, y, options.iterations))
            theirs, own = min(found["torch"]), min(found["ours"])
            print(f"{name:<10} {theirs:9.2f} {own:10.2f} {own / theirs - 1:9.1%}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
