"""Arguments of a Trainer and of its fit: what they may be, and the sentence if they are not."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from daskdl.errors import SettingsError
from daskdl.metrics import Metric
from daskdl.nn import Module, MultiLoss
from daskdl.nn.inputs import parts_of
from daskdl.optim import Method
from daskdl.predict.arguments import check_samples, whole, wrong
from daskdl.train.callbacks import Callback


def check_trainer(model: Any, loss: Any, optimizer: Any, seed: Any) -> None:
    """Raise a SettingsError unless a Trainer can be made of these."""
    if not isinstance(model, Module):
        wrapped = (
            " (wrap one of torch: daskdl.torch.TorchModule(model))" if _of_torch(model) else ""
        )
        raise wrong("Trainer, model", f"a Module of daskdl.nn{wrapped}", model)
    for one in parts_of(loss) or [loss]:
        if not callable(one) or isinstance(one, type):
            raise wrong("Trainer, loss", "a loss such as daskdl.nn.MSELoss()", one)
    if not isinstance(optimizer, Method):
        raise wrong("Trainer, optimizer", "a Method of daskdl.optim such as Adam(1e-3)", optimizer)
    whole("Trainer, seed", seed, 0)


def as_loss(loss: Any) -> Any:
    """Return a loss of torch as one of daskdl, several as their sum, and any other as it is."""
    if isinstance(loss, Mapping):
        return MultiLoss({name: as_loss(one) for name, one in loss.items()})
    if isinstance(loss, (tuple, list)):
        return MultiLoss([as_loss(one) for one in loss], paired=True)
    if not _of_torch(loss):
        return loss
    from daskdl.torch import TorchLoss

    return TorchLoss(loss)


def _of_torch(thing: Any) -> bool:
    """Return whether something is a module of torch, without importing it."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(thing, torch.nn.Module)


def total_of(epochs: Any, iterations: Any, per_epoch: int) -> int:
    """Return the iterations of a run."""
    if (epochs is None) == (iterations is None):
        raise SettingsError(
            f"Trainer.fit: expected either epochs or iterations, found epochs={epochs!r} and "
            f"iterations={iterations!r}; give one of the two"
        )
    if epochs is None:
        return whole("Trainer.fit, iterations", iterations)
    return whole("Trainer.fit, epochs", epochs) * per_epoch


def check_callbacks(callbacks: Any) -> None:
    """Raise a SettingsError unless all are callbacks."""
    if not isinstance(callbacks, Sequence):
        raise wrong("Trainer.fit, callbacks", "a list of Callback", callbacks)
    for i, callback in enumerate(callbacks):
        if not isinstance(callback, Callback):
            more = ", made with ()" if isinstance(callback, type) else ""
            raise wrong(f"Trainer.fit, callbacks[{i}]", f"a Callback{more}", callback)


def validation_names(
    validation: Any, metrics: Mapping[str, Metric], training_metrics: bool
) -> list[str]:
    """Return the names of what a validation comes to; none without validation."""
    if validation is None:
        if metrics and not training_metrics:
            raise SettingsError(
                f"Trainer.fit, training_metrics=False: expected validation samples to compute "
                f"{sorted(metrics)} on, found none"
            )
        return []
    check_samples("Trainer.fit, validation", validation)
    return ["val_loss", *(f"val_{name}" for name in metrics)]
