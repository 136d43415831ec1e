"""Callbacks that watch one column of the epochs: early stopping, the best model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import SettingsError
from daskdl.train.fit.callback import Callback, Logs
from daskdl.train.fit.trainer import Trainer


class _Watching(Callback):
    """Keeps the best value of one column of the epochs."""

    def __init__(self, monitor: str | None = None, higher_is_better: bool | None = None) -> None:
        self.monitor, self.higher_is_better = monitor, higher_is_better
        self.best = np.nan
        self.best_epoch = -1

    def on_fit_begin(self, trainer: Trainer) -> None:
        """Forget the values of an earlier fit, unless this one resumes it."""
        if not trainer.history.epochs:
            self.best, self.best_epoch = np.nan, -1

    def _improved(self, trainer: Trainer, epoch: int, logs: Logs, by: float = 0.0) -> bool:
        monitor = self.monitor or ("val_loss" if "val_loss" in logs else "loss")
        if monitor not in logs:
            raise SettingsError(
                f"{type(self).__name__}: expected monitor to be one of {sorted(logs)}, found "
                f"{monitor!r}"
                "; name one of these; val_... need validation= in fit"
            )
        value, sign = float(logs[monitor]), -1 if self._higher(trainer, monitor) else 1
        least = sign * self.best - by if self.best_epoch >= 0 else np.inf
        if sign * value < least:
            self.best, self.best_epoch = value, epoch
            return True
        return False

    def _higher(self, trainer: Trainer, monitor: str) -> bool:
        if self.higher_is_better is not None:
            return self.higher_is_better
        metric = trainer.metrics.get(monitor.removeprefix("val_"))
        return metric is not None and metric.higher_is_better

    def state(self) -> dict[str, NDArray[Any]]:
        return {"best": np.array(self.best), "epoch": np.array(self.best_epoch)}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        self.best, self.best_epoch = float(state["best"]), int(state["epoch"])


class EarlyStopping(_Watching):
    """Stop when a value has not improved for some epochs.

    Parameters
    ----------
    patience : int
        Epochs to wait for an improvement, at least 1.
    by : float
        Least improvement.
    monitor : str, optional
        Column of the epochs, such as ``val_rocauc``; by default ``val_loss``, without validation
        ``loss``.
    higher_is_better : bool, optional
        By default the property of the trainer's metric of that name; for a loss, and anything else,
        lower is better.

    Examples
    --------
    >>> from daskdl import Trainer
    >>> from daskdl.optim import SGD
    >>> trainer, x = Trainer(nn.Linear(1, 1), nn.MSELoss(), SGD(0.0)), np.ones((8, 1))
    >>> stop = EarlyStopping(patience=2)
    >>> trainer.fit(x, x, epochs=50, batch_size=8, callbacks=[stop], progress=False)
    History(3 iterations, 3 epochs, loss=...)
    """

    def __init__(
        self,
        patience: int = 5,
        by: float = 0.0,
        monitor: str | None = None,
        higher_is_better: bool | None = None,
    ) -> None:
        super().__init__(monitor, higher_is_better)
        if patience < 1 or not by >= 0:
            raise SettingsError(
                "EarlyStopping: expected patience of at least 1 and by of at least 0, found "
                f"patience={patience!r} and by={by!r}; give epochs, and a "
                "change of the value that is watched"
            )
        self.patience, self.by = patience, by

    def on_epoch_end(self, trainer: Trainer, epoch: int, logs: Logs) -> bool | None:
        """Return whether to stop."""
        self._improved(trainer, epoch, logs, self.by)
        return epoch - self.best_epoch >= self.patience


class BestModel(_Watching):
    """Keep the weights of the epoch with the best value, and leave the model with them.

    Parameters
    ----------
    monitor, higher_is_better : optional
        As in :class:`EarlyStopping`.

    Examples
    --------
    >>> from daskdl import Trainer
    >>> from daskdl.optim import SGD
    >>> trainer, x = Trainer(nn.Linear(1, 1, seed=0), nn.MSELoss(), SGD(0.1)), np.ones((8, 1))
    >>> best = BestModel()
    >>> history = trainer.fit(x, x, epochs=3, batch_size=8, callbacks=[best], progress=False)
    >>> best.best_epoch, best.monitor
    (2, None)
    """

    def __init__(self, monitor: str | None = None, higher_is_better: bool | None = None) -> None:
        super().__init__(monitor, higher_is_better)
        self.weights: NDArray[np.float32] | None = None

    def on_fit_begin(self, trainer: Trainer) -> None:
        """Forget the weights of an earlier fit, unless this one resumes it."""
        super().on_fit_begin(trainer)
        if self.best_epoch < 0:
            self.weights = None

    def on_epoch_end(self, trainer: Trainer, epoch: int, logs: Logs) -> bool | None:
        """Keep the weights if they are the best yet."""
        if self._improved(trainer, epoch, logs):
            self.weights = trainer.model.snapshot()
        return None

    def on_fit_end(self, trainer: Trainer) -> None:
        """Put the best weights into the model."""
        if self.weights is not None:
            trainer.model.restore(self.weights)

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the state for a checkpoint, the best weights too."""
        state = super().state()
        return state if self.weights is None else {**state, "weights": self.weights}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Undo :meth:`state`."""
        super().restore(state)
        self.weights = state.get("weights")
