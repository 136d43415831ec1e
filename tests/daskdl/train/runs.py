"""A small problem to fit, and what breaks on purpose while it is fitted."""

from __future__ import annotations

import hashlib
import os
import signal
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from distributed import Client

from daskdl.data import SampleSet
from daskdl.nn import Conv2d, Flatten, Linear, Module, MSELoss, ReLU, Sequential
from daskdl.optim import Adam, Method
from daskdl.train import Callback, Trainer

SAMPLES = 53

#: Returns the client, with so many workers behind it.
ClientOf = Callable[[int], Client]


def problem(partitions: int = 4, n: int = SAMPLES) -> SampleSet:
    """Return samples of which the last input is their number."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 5)).astype(np.float32)
    y = np.tanh(x @ rng.normal(size=(5, 2))).astype(np.float32)
    x[:, 4] = np.arange(n)
    return SampleSet.from_arrays(x=x, y=y, partitions=partitions)


def network() -> Module:
    """Return a small network, always the same; its scale takes the samples' numbers."""
    return Sequential(Linear(5, 8, seed=1), ReLU(), Linear(8, 2, seed=2))


def images(partitions: int = 3) -> SampleSet:
    """Return small images to classify by two numbers."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(29, 6, 6, 2)).astype(np.float32)
    return SampleSet.from_arrays(x=x, y=x.mean((1, 2)), partitions=partitions)


def convolutions() -> Module:
    """Return a small convolutional network."""
    return Sequential(
        Conv2d(2, 3, 3, padding="same", seed=3), ReLU(), Flatten(), Linear(108, 2, seed=4)
    )


def fit(
    samples: SampleSet, model: Module | None = None, method: Method | None = None, **options: Any
) -> Trainer:
    """Fit the problem and return the trainer."""
    trainer = Trainer(model or network(), MSELoss(), method or Adam(1e-3), seed=5)
    options.setdefault("batch_size", 8)
    if "iterations" not in options:
        options.setdefault("epochs", 3)
    trainer.fit(samples, progress=False, **options)
    return trainer


def check_same_bits(
    run: Callable[..., Trainer],
    client_of: ClientOf,
    on: Sequence[tuple[int, str]] = ((2, "graph"), (2, "gang"), (3, "gang")),
) -> Trainer:
    """Assert that so many workers come to the bits of one process by an engine; return its fit."""
    alone = run(client=False)
    for workers, engine in on:
        other = run(client=client_of(workers), engine=engine)
        np.testing.assert_equal(other.model.state_dict(), alone.model.state_dict())
        for column in ("loss", "samples"):
            np.testing.assert_array_equal(other.history[column], alone.history[column])
        for a, b in zip(alone.history.epochs, other.history.epochs, strict=True):
            assert a.get("val_loss") == b.get("val_loss")
    return alone


def digest(trainer: Trainer) -> str:
    """Return what two runs have in common when their weights are the same bits."""
    return hashlib.sha256(trainer.model.flat.tobytes()).hexdigest()


def pids(client: Client) -> list[int]:
    """Return the process ids of all workers."""
    return list(client.run(os.getpid).values())


class Do(Callback):
    """Calls something once, after so many iterations."""

    def __init__(self, after: int, action: Callable[[], object]) -> None:
        self.after, self.action, self.done = after, action, False

    def on_group_end(self, trainer: Trainer, iteration: int) -> None:
        if iteration >= self.after and not self.done:
            self.done = True
            self.action()


class Once:
    """Samples pass; where one with this number is drawn first, ``action`` is called."""

    def __init__(self, marker: Path, number: int, action: Callable[[], None]) -> None:
        self.marker, self.number, self.action = str(marker), number, action

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        if self.number in batch["x"][:, 4]:
            try:
                os.close(os.open(self.marker, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                return batch
            self.action()
        return batch


def die() -> None:
    """End this process as the kernel would for want of memory."""
    os.kill(os.getpid(), signal.SIGKILL)


class Kill:
    """End several processes, this one last."""

    def __init__(self, pids: list[int]) -> None:
        self.pids = pids

    def __call__(self) -> None:
        for pid in self.pids:
            if pid != os.getpid():
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        die()


def stopped(pid: int, seconds: float) -> None:
    """Stop a process and let it go on after a while."""
    os.kill(pid, signal.SIGSTOP)
    threading.Timer(seconds, os.kill, (pid, signal.SIGCONT)).start()


def fail() -> None:
    """Raise what a mistake in a user's code may raise."""
    raise ZeroDivisionError("a mistake of the user's")
