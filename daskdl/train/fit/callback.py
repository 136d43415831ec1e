"""Callback: the base of objects whose methods are called as a fit goes along."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from daskdl.predict.arguments import wrong

if TYPE_CHECKING:
    from daskdl.train.fit.trainer import Trainer

Logs = Mapping[str, float]


class Callback:
    """Base: does nothing. All methods run in the process that called fit.

    During a call ``trainer.model`` has the weights of that moment, and ``trainer.history`` the
    records up to it. At the beginning of a fit and at the end of an epoch a callback may change the
    model's weights; training continues from them. Not between groups: these are cut by time, so
    that every run would differ. Loss, optimizer and frozen parameters must not change in a fit.

    Examples
    --------
    >>> class Tell(Callback):
    ...     def on_epoch_end(self, trainer, epoch, logs):
    ...         print(f"epoch {epoch}: {logs['samples']:.0f} samples")
    ...         return epoch == 1  # enough
    >>> from daskdl import Trainer
    >>> from daskdl.optim import SGD
    >>> trainer, x = Trainer(nn.Linear(1, 1), nn.MSELoss(), SGD(0.1)), np.ones((4, 1))
    >>> history = trainer.fit(x, x, epochs=9, batch_size=4, callbacks=[Tell()], progress=False)
    epoch 0: 4 samples
    epoch 1: 4 samples
    """

    def on_fit_begin(self, trainer: Trainer) -> None:
        """Prepare; called once, after a checkpoint was read."""

    def on_group_end(self, trainer: Trainer, iteration: int) -> None:
        """See the end of a group; ``iteration`` is the number of iterations done."""

    def on_epoch_end(self, trainer: Trainer, epoch: int, logs: Logs) -> bool | None:
        """See the end of an epoch, from 0; return True to stop. ``logs`` is its History row."""

    def on_fit_end(self, trainer: Trainer) -> None:
        """Finish; not called after an error or an interruption."""

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the state for a checkpoint, as arrays that will not change."""
        return {}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Undo :meth:`state`."""


def check_callbacks(callbacks: Any) -> None:
    """Raise a SettingsError unless all are callbacks."""
    if not isinstance(callbacks, Sequence):
        raise wrong("Trainer.fit, callbacks", "a list of Callback", callbacks)
    for i, callback in enumerate(callbacks):
        if not isinstance(callback, Callback):
            more = ", made with ()" if isinstance(callback, type) else ""
            raise wrong(f"Trainer.fit, callbacks[{i}]", f"a Callback{more}", callback)
