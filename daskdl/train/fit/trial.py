"""Trial: one sample through everything, so that a mistake shows before it costs time."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from daskdl.data import Arrays, Batches, Ragged, SampleSet
from daskdl.data.nested import nested
from daskdl.errors import DataError, SettingsError, TrainingError
from daskdl.kernels.runtime.precision import computing_in
from daskdl.kernels.runtime.threads import thread_budget
from daskdl.nn import Module
from daskdl.nn.core.arguments import as_inputs, call, parts_of
from daskdl.predict.measures import wrong_labels
from daskdl.predict.trial import check_loss, check_metrics, check_names, check_words, naming_shapes
from daskdl.tensor import Tensor, no_grad, wants_grad
from daskdl.train.engines.job import Job, Tools
from daskdl.train.fit.checks import say_what_is_odd

if TYPE_CHECKING:
    from daskdl.train.fit.trainer import Trainer

Vector = NDArray[np.float32]

#: Samples on whose halves a loss is tried.
TRIED = 32

logger = logging.getLogger("daskdl.train.fit.trainer")


def inspect(trainer: Trainer, job: Job, samples: SampleSet, batch_size: int) -> None:
    """Look at samples before a fit: one through everything, the labels, what is hardly meant."""
    fewest = max(module.fewest_samples for _, module in trainer.model.modules())
    parts = getattr(trainer.loss, "losses", [trainer.loss])
    means = [one for one in parts if hasattr(one, "check_mean")] if samples.partitions > 1 else []
    # Drawn once: functions of SampleSet.map may be dear, or do something.
    batch = samples.head(TRIED if means else fewest)
    prediction = check_sample(job, first(batch, fewest))
    check_labels(trainer.loss, prediction, samples)
    least = Batches(samples.lengths, batch_size, trainer.seed).least_share() if fewest > 1 else 1
    if least < fewest:
        check_least(job, first(batch, least), least)
    if means:
        check_means(job, trainer.loss, means, samples, batch)
    say_what_is_odd(trainer, prediction, batch_size, len(samples))


def first(batch: dict[str, Any], n: int) -> dict[str, Any]:
    """Return the first samples of a batch."""
    return {name: array[:n] for name, array in batch.items()}


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
    check_words("Trainer.fit", batch)
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
        wrong = wrong_labels(loss, prediction.shape, y)
        if wrong.size:
            raise DataError(
                f"Trainer.fit: expected labels from 0 to {prediction.shape[-1] - 1}, as the model "
                f"has {prediction.shape[-1]} outputs, found y = {y[wrong[0]]} in sample "
                f"{first + wrong[0]} of the SampleSet, and {len(wrong) - 1} more wrong ones in its "
                "partition; number the classes from 0, or give the model an output for each"
            )
        first += len(recipe)


def check_least(job: Job, batch: dict[str, Any], least: int) -> None:
    """Raise a SettingsError where a shard's smallest part of a batch is too small for a layer."""
    model = job.tools().model
    before = model.snapshot()
    try:
        with thread_budget(job.threads), computing_in(job.precision), no_grad():
            call(model.train(), as_inputs(nested(batch, "x")))
    except ValueError as error:
        raise SettingsError(
            f"Trainer.fit: expected a batch_size and shards by which each shard has enough samples "
            f"of each batch, found {least} in some ({error}); take another batch_size or fewer "
            "shards, leave out the samples of the last batch, or replace batch norm"
        ) from error
    finally:
        model.restore(before)


def check_means(
    job: Job, loss: Any, means: list[Any], samples: SampleSet, batch: dict[str, Any]
) -> None:
    """Raise a SettingsError for a loss that is no mean over samples, where there are shards.

    It is tried on the halves of a batch; of labels in memory all are looked at.
    """
    target = nested(batch, "y")
    if means == [loss] and len(parts_of(target)[0]) > 1:
        tools = job.tools()
        with thread_budget(job.threads), computing_in(job.precision), no_grad():
            prediction = call(tools.model.eval(), as_inputs(nested(batch, "x")))
        loss.check_mean(prediction, target)
    for recipe in samples.recipes if not samples.functions else ():
        if isinstance(recipe, Arrays) and isinstance(recipe.arrays.get("y"), np.ndarray):
            for one in means:
                one.check_labels(recipe.arrays["y"])


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
