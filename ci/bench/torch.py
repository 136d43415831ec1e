"""``python -m ci.bench.torch``: a step of a torch module on the engine against a loop in torch.

Both train the same network from the same weights, in turns, and time each iteration. With ``--ddp``
two workers of a thread each race against two processes of PyTorch's DistributedDataParallel over
gloo; there the medians count.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from typing import Any

import dask
import numpy as np
import torch

from ci.bench.engine.contestants import Pair, Step, free_port, gloo
from ci.bench.timing import Case, options_of, raced
from daskdl.cluster import connect
from daskdl.data import SampleSet
from daskdl.kernels.runtime.threads import threads
from daskdl.optim import SGD
from daskdl.torch import TorchModule
from daskdl.train import Trainer

#: In a turn.
ITERATIONS = 15


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


def bare(net: torch.nn.Module, x: Any, y: Any) -> list[float]:
    """Return the milliseconds of each iteration of torch's loop."""
    optimizer = torch.optim.SGD(net.parameters(), 0.01)
    inputs, target = torch.from_numpy(x), torch.from_numpy(y)
    times = []
    for _ in range(ITERATIONS):
        began = time.perf_counter()
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(net(inputs), target).backward()
        optimizer.step()
        times.append(1000 * (time.perf_counter() - began))
    return times[1:]


def ours(net: torch.nn.Module, x: Any, y: Any, **options: Any) -> list[float]:
    """Return the engine's milliseconds of each iteration, the first two left out."""
    trainer = Trainer(TorchModule(net), torch.nn.CrossEntropyLoss(), SGD(0.01))
    samples = SampleSet.from_arrays(x=x, y=y, partitions=2 if options else 1)
    history = trainer.fit(
        samples, iterations=ITERATIONS + 2, batch_size=len(x), progress=False, threads=threads(),
        **options,
    )  # fmt: skip
    return [1000 * float(seconds) for seconds in history["seconds"][2:]]


def distributed(rank: int, port: int, number: int) -> Step:
    """Return an iteration of one of two processes of PyTorch's DDP, each with half of the batch.

    A ``number`` of no network is the number of bytes of an all-reduce.
    """
    if number >= len(NETWORKS):
        return gloo(rank, port, number)
    from torch.nn.parallel import DistributedDataParallel

    gloo(rank, port, 4)()  # connects
    torch.manual_seed(0)
    net, x = [*NETWORKS.values()][number]()
    inputs = torch.from_numpy(x)[rank::2]
    target = torch.from_numpy(np.random.default_rng(1).integers(0, 10, len(x)))[rank::2]
    parallel = DistributedDataParallel(net)
    optimizer = torch.optim.SGD(parallel.parameters(), 0.01)

    def step() -> None:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(parallel(inputs), target).backward()
        optimizer.step()

    return step


def labels(x: Any) -> Any:
    """Return a class for each sample."""
    return np.random.default_rng(1).integers(0, 10, len(x))


def cases() -> Iterator[Case]:
    """Yield each network in this process."""
    for name, make in NETWORKS.items():
        net, x = make()
        y = labels(x)
        yield Case(name, partial(ours, net, x, y), {"torch": partial(bare, net, x, y)}, timed=True)


def cases_ddp() -> Iterator[Case]:
    """Yield each network on two workers, against two processes of DDP."""
    with (
        dask.config.set({"daskdl.group-time": "1 minute"}),
        connect(workers=2) as client,
        closing(Pair(distributed, free_port())) as pair,
    ):
        for number, (name, make) in enumerate(NETWORKS.items()):
            net, x = make()
            fit = partial(ours, net, x, labels(x), client=client, engine="gang")
            peer = partial(pair.times, number, ITERATIONS)
            yield Case(f"{name}, two workers", fit, {"DDP": peer}, timed=True)


NETWORKS = {"residual": residual, "encoder": encoder}


def main(arguments: list[str] | None = None) -> None:
    """Run and print."""
    parser = options_of(__doc__, seconds=0.0, threads="1")
    parser.add_argument("--rounds", type=int, default=5, help="turns of 15 iterations, at least")
    parser.add_argument("--ddp", action="store_true", help="two workers against PyTorch's DDP")
    options = parser.parse_args(arguments)
    raced(options, cases_ddp if options.ddp else cases, least_runs=options.rounds)


if __name__ == "__main__":
    main()
