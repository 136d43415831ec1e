"""Trial: one sample through everything, so that a mistake shows before it costs time."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from daskdl.errors import DaskdlError, DataError, SettingsError, TrainingError
from daskdl.kernels.runtime.threads import thread_budget
from daskdl.nn.inputs import as_inputs
from daskdl.tensor import Tensor, no_grad, wants_grad
from daskdl.train.job import Job, Tools


def check_sample(job: Job, batch: dict[str, Any], trains: bool = True) -> None:
    """Run one sample through a copy of the model, its loss and its metrics.

    Parameters
    ----------
    job : Job
    batch : dict
        Of one sample.
    trains : bool
        Whether gradients are wanted, too.

    Raises
    ------
    DataError
        For samples without x or y.
    SettingsError
        For samples with weights, of which the loss or a metric does not know.
    DaskdlError
        What the model raises of itself, such as a ShapeError that names the layer.
    TrainingError
        For any other exception, for a loss that is not one number, and, if it trains, for one that
        no parameter changes.
    """
    where = "Trainer.fit" if trains else "Trainer.evaluate"
    if "x" not in batch or "y" not in batch:
        raise DataError(f"{where}: expected samples with x and y, found {sorted(batch)}")
    x = as_inputs(batch["x"])
    tools = job.tools()
    _check_weight(where, tools, batch)
    shapes = {name: np.shape(array) for name, array in batch.items()}
    try:
        with thread_budget(job.threads):
            if trains:
                loss = tools.compare(tools.model.train()(x), batch)
                _check_loss(tools, loss)
                _check_tape(tools, loss)
                loss.backward()
            with no_grad():
                prediction = tools.model.eval()(x)
                if not trains:
                    _check_loss(tools, tools.compare(prediction, batch))
                measured = tools.measure(prediction, batch)
            for metric, statistics in zip(tools.metrics, measured, strict=True):
                metric.value(statistics)
    except DaskdlError:
        raise
    except Exception as error:
        raise TrainingError(
            f"{type(tools.model).__name__}: one sample of shapes {shapes} raised "
            f"{type(error).__name__}: {error}"
        ) from error


def _check_loss(tools: Tools, loss: Any) -> None:
    if not isinstance(loss, Tensor) or loss.data.size != 1:
        found = f"shape {loss.shape}" if isinstance(loss, Tensor) else repr(loss)
        raise TrainingError(
            f"{_name(tools.loss)}: expected the loss to be a Tensor of one number, found {found}"
        )


def _check_tape(tools: Tools, loss: Tensor) -> None:
    if not wants_grad(loss):
        raise TrainingError(
            f"{type(tools.model).__name__}: expected a loss that depends on parameters to train, "
            "found one that does not: there are none, all are frozen, or forward left the tape, as "
            "it does by arithmetic on numpy arrays such as .data"
        )


def _check_weight(where: str, tools: Tools, batch: dict[str, Any]) -> None:
    if "sample_weight" not in batch:
        return
    for function in (tools.loss, *(metric.statistics for metric in tools.metrics)):
        if not _takes_weight(function):
            raise SettingsError(
                f"{where}: the samples have sample_weight, expected {_name(function)} to take "
                "it as an argument of that name, found that it does not; add the argument, or "
                "give samples without weights"
            )


def _takes_weight(function: Callable[..., Any]) -> bool:
    function = getattr(function, "forward", function)  # a loss of daskdl.nn
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return True  # it will tell
    return any(p.name == "sample_weight" or p.kind is p.VAR_KEYWORD for p in parameters)


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__qualname__", type(function).__qualname__)
