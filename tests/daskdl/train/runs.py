"""Small problems to fit, faults on purpose, and runs that are interrupted."""

from __future__ import annotations

import hashlib
import os
import signal
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from distributed import Client

from daskdl.data import SampleSet
from daskdl.nn import Conv2d, Flatten, Linear, Module, MSELoss, ReLU, Sequential
from daskdl.optim import Adam, Method
from daskdl.train import BestModel, Callback, EarlyStopping, Trainer
from daskdl.train.fit.callback import Logs

SAMPLES = 53

#: Returns the client of a cluster with that many workers.
ClientOf = Callable[[int], Client]


def problem(partitions: int = 4, n: int = SAMPLES) -> SampleSet:
    """Return samples whose last input is the number of the sample."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 5)).astype(np.float32)
    y = np.tanh(x @ rng.normal(size=(5, 2))).astype(np.float32)
    x[:, 4] = np.arange(n)
    return SampleSet.from_arrays(x=x, y=y, partitions=partitions)


def network() -> Module:
    """Return a small network, always with the same weights."""
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
    samples: SampleSet,
    model: Callable[[], Module] = network,
    method: Method | None = None,
    **options: Any,
) -> Trainer:
    """Fit a new model to samples and return the trainer."""
    trainer = Trainer(model(), MSELoss(), method or Adam(1e-3), seed=5)
    options.setdefault("batch_size", 8)
    if "iterations" not in options:
        options.setdefault("epochs", 3)
    trainer.fit(samples, progress=False, **options)
    return trainer


def digest(trainer: Trainer) -> str:
    """Return the digest of the weights."""
    return hashlib.sha256(trainer.model.flat.tobytes()).hexdigest()


def pids(client: Client) -> list[int]:
    """Return the process ids of all workers."""
    return list(client.run(os.getpid).values())


def failing(error: type[BaseException]) -> Callable[[], None]:
    """Return a function that raises an error."""

    def fails() -> None:
        raise error

    return fails


#: Raises what Ctrl-C raises.
interrupt = failing(KeyboardInterrupt)


class Do(Callback):
    """Calls ``action`` once, after that many iterations or after an epoch."""

    def __init__(
        self,
        after: int | None = None,
        action: Callable[[], object] = interrupt,
        epoch: int | None = None,
    ) -> None:
        self.after, self.action, self.epoch, self.done = after, action, epoch, False

    def on_group_end(self, trainer: Trainer, iteration: int) -> None:
        if self.after is not None and iteration >= self.after and not self.done:
            self.done = True
            self.action()

    def on_epoch_end(self, trainer: Trainer, epoch: int, logs: Logs) -> None:
        if epoch == self.epoch:
            self.action()


class On(Callback):
    """Calls functions of the trainer; keeps the results of those after groups and epochs.

    The function after an epoch ends the fit by returning True.
    """

    def __init__(self, begin: Any = None, group: Any = None, epoch: Any = None) -> None:
        self.begin, self.group, self.epoch = begin, group, epoch
        self.seen = list[Any]()

    def on_fit_begin(self, trainer: Trainer) -> None:
        if self.begin is not None:
            self.begin(trainer)

    def on_group_end(self, trainer: Trainer, iteration: int) -> None:
        if self.group is not None:
            self.seen.append(self.group(trainer))

    def on_epoch_end(self, trainer: Trainer, epoch: int, logs: Logs) -> bool:
        if self.epoch is not None:
            self.seen.append(self.epoch(trainer))
        return self.epoch is not None and self.seen[-1] is True


def first(marker: Path | str) -> bool:
    """Return whether this process is the first to ask; that it was stays in a file."""
    try:
        Path(marker).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


class Once:
    """Calls ``action`` when the sample with this number is first drawn."""

    def __init__(self, marker: Path, number: int, action: Callable[[], None]) -> None:
        self.marker, self.number, self.action = str(marker), number, action

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        if self.number in batch["x"][:, 4] and first(self.marker):
            self.action()
        return batch


def die() -> None:
    """End this process as the kernel would for want of memory."""
    os.kill(os.getpid(), signal.SIGKILL)


def stopped(pid: int, seconds: float) -> None:
    """Stop a process and let it go on after a while."""
    os.kill(pid, signal.SIGSTOP)
    threading.Timer(seconds, os.kill, (pid, signal.SIGCONT)).start()


class Diary(Callback):
    """Records its calls, and stops the fit after an epoch."""

    def __init__(self, stop: int | None = None) -> None:
        self.stop, self.calls = stop, list[Any]()

    def on_fit_begin(self, trainer: Trainer) -> None:
        self.calls.append("begin")

    def on_group_end(self, trainer: Trainer, iteration: int) -> None:
        assert len(trainer.history) == iteration
        self.calls.append(iteration)

    def on_epoch_end(self, trainer: Trainer, epoch: int, logs: Logs) -> bool:
        assert trainer.history.epochs[-1] == logs
        self.calls.append(f"epoch {epoch}")
        return epoch == self.stop

    def on_fit_end(self, trainer: Trainer) -> None:
        self.calls.append("end")


class Run:
    """A run with its own callbacks; uninterrupted, epoch 2 is the best and epoch 4 the last."""

    def __init__(self) -> None:
        self.best, self.stop = BestModel(), EarlyStopping(2)
        self.trainer = Trainer(network(), MSELoss(), Adam(5e-3), seed=5)

    def fit(
        self,
        folder: Path | None = None,
        before: Sequence[Callback] = (),
        after: Sequence[Callback] = (),
        **options: Any,
    ) -> Run:
        options = {"epochs": 9, "batch_size": 8, **options}
        self.trainer.fit(
            problem(),
            validation=problem(2, 9),
            checkpoint=folder,
            callbacks=[*before, self.best, self.stop, *after],
            progress=False,
            **options,
        )
        return self

    def outcome(self) -> dict[str, Any]:
        """Return everything that must not depend on interruptions."""
        history = self.trainer.history
        names = {"epoch", "iteration", "loss", "samples", "val_loss"}  # all but times
        rows = [{k: v for k, v in row.items() if k in names} for row in history.epochs]
        return {
            "weights": self.trainer.model.flat.tobytes(),
            "loss": history["loss"].tolist(),
            "samples": history["samples"].tolist(),
            "epochs": rows,
            "best": (self.best.best, self.best.best_epoch),
            "stop": (self.stop.best, self.stop.best_epoch),
        }


def iterations_in(folder: Path) -> list[int]:
    """Return the iterations of the checkpoints."""
    return sorted(int(p.name.removeprefix("step-")) for p in folder.iterdir())
