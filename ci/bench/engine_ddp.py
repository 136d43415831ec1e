"""Two processes that train beside PyTorch's DDP: ``python -m ci.bench.engine --part ddp``.

The same networks, batches and optimizer on both sides, one thread a process, and as many bytes to
exchange. The two take turns; what counts is the ratio of the median iterations of one run.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import dask
import numpy as np

from ci.bench.engine_peers import Pair, Step, free_port, gloo
from daskdl.cluster import connect
from daskdl.data import SampleSet
from daskdl.nn import Conv2d, CrossEntropyLoss, Flatten, Linear, MaxPool2d, Module, ReLU, Sequential
from daskdl.optim import SGD
from daskdl.train import Trainer

#: Samples of an iteration, of both processes together, and numbers of one sample (height, width,
#: channels), by network.
BATCHES = {"mlp": (256, (784,)), "cnn": (64, (32, 32, 3))}
NAMES = list(BATCHES)
SAMPLES = 4096


def samples(name: str) -> tuple[Any, Any]:
    """Return images of noise and their classes."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(SAMPLES, *BATCHES[name][1])).astype(np.float32)
    return x, rng.integers(0, 10, SAMPLES)


def ours(name: str) -> Module:
    """Return our network."""
    if name == "mlp":
        return Sequential(Linear(784, 512), ReLU(), Linear(512, 512), ReLU(), Linear(512, 10))
    return Sequential(
        Conv2d(3, 32, 3, padding="same"),
        ReLU(),
        MaxPool2d(2),
        Conv2d(32, 64, 3, padding="same"),
        ReLU(),
        MaxPool2d(2),
        Flatten(),
        Linear(4096, 128),
        ReLU(),
        Linear(128, 10),
    )


def theirs(rank: int, port: int, number: int) -> Step:
    """Return an iteration of PyTorch's DDP over gloo; other numbers are sizes of an all-reduce."""
    if number >= len(NAMES):
        return gloo(rank, port, number)
    import torch
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel

    gloo(rank, port, 4)()  # connects
    name = NAMES[number]
    if name == "mlp":
        net: Any = nn.Sequential(
            nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)
        )
    else:
        net = nn.Sequential(
            nn.Conv2d(3, 32, 3, padding="same"),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(32, 64, 3, padding="same"),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(4096, 128),
            nn.ReLU(),
            nn.Linear(128, 10),
        )
    parallel = DistributedDataParallel(net)
    optimizer = torch.optim.SGD(parallel.parameters(), 0.01, momentum=0.9)
    images, classes = samples(name)
    if name == "cnn":
        images = np.ascontiguousarray(images.transpose(0, 3, 1, 2))
    x, y = torch.from_numpy(images)[rank::2], torch.from_numpy(classes)[rank::2]
    each, rng = BATCHES[name][0] // 2, torch.Generator().manual_seed(rank)
    loss = nn.CrossEntropyLoss()

    def step() -> None:
        chosen = torch.randint(len(x), (each,), generator=rng)
        optimizer.zero_grad()
        loss(parallel(x[chosen]), y[chosen]).backward()
        optimizer.step()

    return step


def iterations(name: str, engine: str, count: int, client: Any) -> list[float]:
    """Return the milliseconds of each of our iterations, of one group without its beginning."""
    x, y = samples(name)
    data = SampleSet.from_arrays(x=x, y=y, partitions=2)
    trainer = Trainer(ours(name), CrossEntropyLoss(), SGD(0.01, momentum=0.9))
    options = {"batch_size": BATCHES[name][0], "progress": False, "threads": 1}
    history = trainer.fit(
        data, iterations=count + 2, engine=engine, client=client, callbacks=(), **options
    )
    return (1000 * history["seconds"][2:]).tolist()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5, help="turns of each side")
    parser.add_argument("--calls", type=int, default=20, help="iterations in a turn")
    parser.add_argument("--json", type=Path, help="write the ratios to this file")
    options = parser.parse_args(arguments)
    lines = []
    print(f"{'':>4} {'engine':>8} {'ours ms':>9} {'DDP ms':>9} {'samples/s':>10} {'ratio':>6}")
    pair = Pair(theirs, free_port())
    try:
        with dask.config.set({"daskdl.group-time": "1 minute"}), connect(workers=2) as client:
            for number, name in enumerate(NAMES):
                times: dict[str, list[float]] = {}
                for _ in range(options.rounds):
                    times.setdefault("DDP", []).extend(pair.times(number, options.calls))
                    for engine in ("gang", "graph"):
                        found = iterations(name, engine, options.calls, client)
                        times.setdefault(engine, []).extend(found)
                medians = {key: statistics.median(ms) for key, ms in times.items()}
                for engine in ("gang", "graph"):
                    mine, peer = medians[engine], medians["DDP"]
                    rate = 1000 * BATCHES[name][0] / mine
                    print(
                        f"{name:>4} {engine:>8} {mine:>9.2f} {peer:>9.2f} {rate:>10.0f} "
                        f"{peer / mine:>6.2f}",
                        flush=True,
                    )
                    lines.append(
                        {
                            "name": f"two processes/{name}/{engine}",
                            "ours_ms": mine,
                            "peer_ms": peer,
                            "ratio": peer / mine,
                            "samples_per_second": rate,
                            "peer": "DistributedDataParallel, gloo",
                        }
                    )
    finally:
        pair.stop()
    if options.json:
        options.json.write_text(json.dumps(lines, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
