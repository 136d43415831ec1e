"""Time an engine's training of a model of any size that computes next to nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from distributed import Client

from daskdl.data import SampleSet
from daskdl.nn import MSELoss
from daskdl.optim import SGD
from daskdl.scaling.waiting import Waiting
from daskdl.train import History, Trainer


def fitted(n_bytes: int, shards: int, iterations: int, **options: Any) -> History:
    """Return the history of a fit of so many iterations."""
    x = np.ones((8 * shards, 4), np.float32)
    samples = SampleSet.from_arrays(x=x, y=x, partitions=shards)
    trainer = Trainer(Waiting(n_bytes // 4), MSELoss(), SGD(0.01))
    options = {"batch_size": 2 * shards, "progress": False, **options}
    return trainer.fit(samples, iterations=iterations, **options)


@contextmanager
def apart(client: Client) -> Iterator[None]:
    """Let no two workers find that they are on one machine."""

    def let(reached: Any) -> Any:
        from daskdl.collective.transport import connecting as linking

        before, linking._reached = linking._reached, reached or (lambda name: None)
        return before

    before = client.run(let, None)
    try:
        yield
    finally:
        client.run(let, next(iter(before.values())))


@contextmanager
def by_comm(client: Client) -> Iterator[None]:
    """Leave all messages to Dask's own connections and the workers' event loops, over TCP."""

    def let(plain: bool) -> None:
        from daskdl.collective import exchange
        from daskdl.compat.distributed_comm import is_plain_tcp

        exchange.is_plain_tcp = is_plain_tcp if plain else lambda comm: False

    client.run(let, False)
    try:
        yield
    finally:
        client.run(let, True)


def synchronization(history: History, skip: int = 2) -> list[float]:
    """Return, for each iteration but the first, the milliseconds that are not computation.

    For the gang engine these are its two exchanges and all that lies between the phases.
    """
    compute = sum(history[name] for name in ("data", "forward", "backward", "update"))
    return (1000 * (history["seconds"] - compute))[skip:].tolist()


def exchanges(history: History, skip: int = 2) -> list[float]:
    """Return, for each iteration but the first, the milliseconds of both exchanges of a gang."""
    return (1000 * (history["reduce"] + history["broadcast"]))[skip:].tolist()
