"""Trial: one sample through everything, so that a mistake shows before it costs time."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.data import Arrays, Ragged, SampleSet
from daskdl.data.nested import nested
from daskdl.errors import DataError, TrainingError
from daskdl.kernels.runtime.precision import computing_in
from daskdl.kernels.runtime.threads import thread_budget
from daskdl.nn import Module
from daskdl.nn.inputs import as_inputs, call
from daskdl.predict.measures import wrong_labels
from daskdl.predict.trial import check_label, check_loss, check_metrics, check_names, naming_shapes
from daskdl.tensor import Tensor, no_grad, wants_grad
from daskdl.train.job import Job, Tools

Vector = NDArray[np.float32]

logger = logging.getLogger("daskdl.train.trainer")


def check_sample(job: Job, batch: dict[str, Any]) -> Any:
    """Run one sample through a copy of the model, its loss with gradients, and its metrics.

    Returns the prediction.

    Parameters
    ----------
    job : Job
    batch : dict
        Of one sample.

    Raises
    ------
    DataError
        For samples without x or y.
    SettingsError
        For samples with weights, of which the loss or a metric does not know.
    DaskdlError
        Errors of the model itself, such as a ShapeError that names the layer.
    TrainingError
        For any other exception, for a loss that is not one number, for one that no parameter
        changes, and for a forward that puts other parameters or buffers in the place of its own.
    """
    check_names("Trainer.fit", batch)
    check_label("Trainer.fit", batch)
    tools = job.tools()
    tools.check_weight("Trainer.fit", batch)
    x = as_inputs(nested(batch, "x"))
    whole = tools.model.vector
    before = whole.copy()  # of which a pass in training changes the buffers
    budget, precise = thread_budget(job.threads), computing_in(job.precision)
    with naming_shapes(tools.model, batch), budget, precise:
        loss = tools.compare(call(tools.model.train(), x), batch)
        _check_kept(tools.model, whole, before)
        check_loss(tools, loss)
        _check_tape(tools, loss)
        loss.backward()
        with no_grad():
            prediction = call(tools.model.eval(), x)
            check_metrics(tools, prediction, batch)
        tools.model.vector[:] = before
    return prediction


def check_labels(loss: Callable[..., Any], prediction: Any, samples: SampleSet) -> None:
    """Raise a DataError for a label that is no class, where that takes one pass over memory.

    Those of other samples, and those that functions of ``SampleSet.map`` make, are checked in the
    iteration that draws them.
    """
    if samples.functions or not isinstance(prediction, Tensor):
        return
    first = 0
    for recipe in samples.recipes:
        if not isinstance(recipe, Arrays) or "y" not in recipe.arrays:
            return
        y = recipe.arrays["y"]
        if isinstance(y, Ragged):
            return
        found = wrong_labels(loss, prediction.shape, y)
        if found.size:
            raise DataError(
                f"Trainer.fit: expected labels from 0 to {prediction.shape[-1] - 1}, as the model "
                f"has {prediction.shape[-1]} outputs, found y = {y[found[0]]} in sample "
                f"{first + found[0]} of the SampleSet, and {len(found) - 1} more wrong ones in its "
                "partition; number the classes from 0, or give the model an output for each"
            )
        first += len(recipe)


def _check_kept(model: Module, whole: Vector, before: Vector) -> None:
    """Refuse what makes new tensors in forward, and log which parameters it has changed.

    Neither reaches the vectors that other threads and workers have.
    """
    name = type(model).__name__
    if model.vector is not whole:
        raise TrainingError(
            f"{name}: expected forward to keep the model's parameters and buffers, found that it "
            "puts others in their place; write new values into their arrays, as in "
            "self.mean.data[...] = mean"
        )
    start = 0
    for path, parameter in model.named_parameters():
        if parameter.sparse:
            continue
        stop = start + parameter.data.size
        if whole[start:stop].tobytes() != before[start:stop].tobytes():
            logger.warning(
                "Trainer.fit, %s: expected forward to leave parameters to the optimizer, found "
                "that it changes %s; what it writes is lost on other threads and workers, and the "
                "result not the same on any number of them; write an optim method that keeps the "
                "limit, or compute with a changed copy",
                name,
                path,
            )
        start = stop


def _check_tape(tools: Tools, loss: Tensor) -> None:
    if not wants_grad(loss):
        raise TrainingError(
            f"{type(tools.model).__name__}: expected a loss that depends on parameters to train, "
            "found one that does not: there are none, all are frozen, or forward left the tape, as "
            "it does by arithmetic on numpy arrays such as .data"
            "; unfreeze a layer, or use operations of daskdl.ops"
        )
