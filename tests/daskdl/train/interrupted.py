"""Runs that are interrupted, and what must not depend on it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from daskdl.nn import MSELoss
from daskdl.optim import Adam
from daskdl.train import BestModel, Callback, EarlyStopping, Trainer
from daskdl.train.watch.callbacks import Logs
from tests.daskdl.train.runs import network, problem


class Interrupt(Callback):
    """Raises after so many iterations, or at an epoch's end."""

    def __init__(
        self,
        iteration: int | None = None,
        epoch: int | None = None,
        error: type[BaseException] = KeyboardInterrupt,
    ) -> None:
        self.iteration, self.epoch, self.error = iteration, epoch, error

    def on_group_end(self, trainer: Trainer, iteration: int) -> None:
        if iteration == self.iteration:
            raise self.error

    def on_epoch_end(self, trainer: Trainer, epoch: int, logs: Logs) -> None:
        if epoch == self.epoch:
            raise self.error


class Diary(Callback):
    """Keeps what was called, and asks to stop after an epoch."""

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
    """A run with objects of its own; left alone, epoch 2 is its best and epoch 4 its last."""

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

    def came_to(self) -> dict[str, Any]:
        """Return all that must not depend on interruptions."""
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
