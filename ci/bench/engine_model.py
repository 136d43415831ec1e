"""A model of any size that computes next to nothing, and how long an engine takes to train it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from distributed import Client

from daskdl.data import SampleSet
from daskdl.nn import Module, MSELoss
from daskdl.nn.module import Parameter
from daskdl.optim import SGD
from daskdl.tensor import op
from daskdl.train import History, Trainer


@op
def scaled(x: Any, weight: Any) -> Any:
    """Multiply x (N, F) by the first F of a long vector of weights."""
    few = x.shape[1]

    def backward(dy: Any) -> Any:
        gradient = np.zeros_like(weight)
        gradient[:few] = (dy * x).sum(0)
        return None, gradient

    return x * weight[:few], backward


class Bulk(Module):
    """Weights of so many bytes."""

    def __init__(self, n_bytes: int) -> None:
        self.weight = Parameter(np.zeros(n_bytes // 4, np.float32))

    def forward(self, x: Any) -> Any:
        """Return x (N, F) times the first F weights."""
        return scaled(x, self.weight)


def fitted(n_bytes: int, shards: int, iterations: int, **options: Any) -> History:
    """Return the history of a fit of so many iterations."""
    x = np.ones((8 * shards, 4), np.float32)
    samples = SampleSet.from_arrays(x=x, y=x, partitions=shards)
    trainer = Trainer(Bulk(n_bytes), MSELoss(), SGD(0.01))
    options = {"batch_size": 2 * shards, "progress": False, **options}
    return trainer.fit(samples, iterations=iterations, **options)


@contextmanager
def apart(client: Client) -> Iterator[None]:
    """Let no two workers find that they are on one machine."""

    def let(reached: Any) -> Any:
        from daskdl.train import linking

        before, linking._reached = linking._reached, reached or (lambda name: None)
        return before

    before = client.run(let, None)
    try:
        yield
    finally:
        client.run(let, next(iter(before.values())))


def synchronization(history: History, skip: int = 2) -> list[float]:
    """Return, for each iteration but the first, the milliseconds that are not computation.

    For the gang engine these are its two exchanges and all that lies between the phases.
    """
    compute = sum(history[name] for name in ("data", "forward", "backward", "update"))
    return (1000 * (history["seconds"] - compute))[skip:].tolist()


def exchanges(history: History, skip: int = 2) -> list[float]:
    """Return, for each iteration but the first, the milliseconds of both exchanges of a gang."""
    return (1000 * (history["reduce"] + history["broadcast"]))[skip:].tolist()
