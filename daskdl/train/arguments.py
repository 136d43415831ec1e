"""Arguments of a Trainer and of its fit: what they may be, and the sentence if they are not."""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping, Sequence
from typing import Any

from daskdl.data import SampleSet
from daskdl.errors import SettingsError
from daskdl.metrics import Metric
from daskdl.nn import Module
from daskdl.optim import Method
from daskdl.train.callbacks import Callback
from daskdl.train.history import COLUMNS, EPOCH


def check_trainer(model: Any, loss: Any, optimizer: Any, seed: Any) -> None:
    """Raise a SettingsError unless a Trainer can be made of these."""
    if not isinstance(model, Module):
        raise _wrong("Trainer, model", "a Module of daskdl.nn", model)
    if not callable(loss) or isinstance(loss, type):
        raise _wrong("Trainer, loss", "a loss such as daskdl.nn.MSELoss()", loss)
    if not isinstance(optimizer, Method):
        raise _wrong("Trainer, optimizer", "a Method of daskdl.optim such as Adam(1e-3)", optimizer)
    whole("Trainer, seed", seed, 0)


def whole(where: str, value: Any, least: int = 1) -> int:
    """Return a whole number of at least ``least`` as Python's own, which a checkpoint can hold."""
    try:
        number = least - 1 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = least - 1
    if number < least:
        raise _wrong(where, f"a whole number of at least {least}", value)
    return number


def total_of(epochs: Any, iterations: Any, per_epoch: int) -> int:
    """Return the iterations of a run."""
    if (epochs is None) == (iterations is None):
        raise SettingsError(
            f"Trainer.fit: expected either epochs or iterations, found epochs={epochs!r} and "
            f"iterations={iterations!r}"
        )
    if epochs is None:
        return whole("Trainer.fit, iterations", iterations)
    return whole("Trainer.fit, epochs", epochs) * per_epoch


def check_samples(where: str, samples: Any) -> None:
    """Raise a SettingsError unless these are samples."""
    if not isinstance(samples, SampleSet):
        raise _wrong(where, "a SampleSet, such as SampleSet.from_arrays(x=x, y=y)", samples)


def check_callbacks(callbacks: Any) -> None:
    """Raise a SettingsError unless all are callbacks."""
    if not isinstance(callbacks, Sequence):
        raise _wrong("Trainer.fit, callbacks", "a list of Callback", callbacks)
    for i, callback in enumerate(callbacks):
        if not isinstance(callback, Callback):
            more = ", made with ()" if isinstance(callback, type) else ""
            raise _wrong(f"Trainer.fit, callbacks[{i}]", f"a Callback{more}", callback)


def metrics_by_name(metrics: Any) -> dict[str, Metric]:
    """Return metrics by name: the given one, or the class's as in ``mean_absolute_error``."""
    if isinstance(metrics, Mapping):
        named = [(str(name), metric) for name, metric in metrics.items()]
    elif isinstance(metrics, Sequence) and not isinstance(metrics, str):
        named = [(_snake(type(metric).__name__), metric) for metric in metrics]
    else:
        raise _wrong("Trainer, metrics", "a list of Metric, or a dict of them by name", metrics)
    for i, (name, metric) in enumerate(named):
        if not isinstance(metric, Metric):
            where = (
                f"Trainer, metrics[{name!r}]"
                if isinstance(metrics, Mapping)
                else (f"Trainer, metrics[{i}]")
            )
            raise _wrong(
                where,
                "a Metric such as daskdl.metrics.ROCAUC(); "
                "Mean(function) is one of a function of each sample",
                metric,
            )
    result = dict(named)
    if len(result) < len(named) or not result.keys().isdisjoint((*COLUMNS, *EPOCH)):
        raise SettingsError(
            "Trainer, metrics: expected names that differ from each other and from 'loss' and the "
            f"other columns of a History, found {[name for name, _ in named]}; give a dict of "
            "metrics by name"
        )
    return result


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


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def _wrong(where: str, expected: str, found: Any) -> SettingsError:
    shown = " ".join(repr(found).split())
    shown = shown if len(shown) <= 80 else f"{shown[:77]}..."
    return SettingsError(f"{where}: expected {expected}, found {shown}")
