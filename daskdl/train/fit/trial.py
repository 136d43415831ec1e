"""Trial: one sample runs through everything, so that mistakes show early."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from daskdl.data import Arrays, Batches, Ragged, SampleSet
from daskdl.data.nested import nested
from daskdl.errors import DataError, SettingsError, TrainingError
from daskdl.kernels.runtime.precision import computing_in
from daskdl.kernels.runtime.threads import thread_budget
from daskdl.nn import Module
from daskdl.nn.core.arguments import as_inputs, call, each, parts_of
from daskdl.predict.measures import wrong_labels
from daskdl.predict.trial import check_loss, check_metrics, check_names, check_words, naming_shapes
from daskdl.tensor import Tensor, no_grad, wants_grad
from daskdl.train.engines.job import Job, Tools
from daskdl.train.fit.options import say_what_is_odd

if TYPE_CHECKING:
    from daskdl.train.fit.trainer import Trainer

Vector = NDArray[np.float32]

#: Samples on whose halves a loss is tried.
TRIED = 32
#: Relative difference of two sums of the same numbers in float32.
MEAN = 1e-4

logger = logging.getLogger("daskdl.train.fit.trainer")


def inspect(trainer: Trainer, job: Job, samples: SampleSet, batch_size: int) -> None:
    """Check samples before a fit: run one through everything, check labels, log oddities."""
    fewest = max(module.fewest_samples for _, module in trainer.model.modules())
    parts = getattr(trainer.loss, "losses", [trainer.loss])
    whole = [one for one in parts if getattr(one, "whole_batch", False)]
    if samples.partitions > 1 and whole and not job.whole_batch:
        raise SettingsError(
            f"Trainer, loss: expected {type(whole[0]).__name__} as the only loss of a fit with "
            f"several shards, found {len(parts)}; take it alone, or fit(shards=1)"
        )
    foreign = samples.partitions > 1 and not all(map(is_ours, parts))
    # Drawn once: functions of SampleSet.map may be dear, or do something.
    batch = samples.head(TRIED if foreign else fewest)
    prediction = check_sample(job, first(batch, fewest))
    check_labels(trainer.loss, prediction, samples)
    least = Batches(samples.lengths, batch_size, trainer.seed).least_share() if fewest > 1 else 1
    if least < fewest:
        check_least(job, first(batch, least), least)
    if foreign:
        check_means(job, samples, batch)
    say_what_is_odd(trainer, prediction, batch_size, len(samples))


def first(batch: dict[str, Any], n: int) -> dict[str, Any]:
    """Return the first samples of a batch."""
    return {name: array[:n] for name, array in batch.items()}


def check_sample(job: Job, batch: dict[str, Any]) -> Any:
    """Run one sample through a copy of the model, its loss with gradients, and its metrics.

    Returns the prediction. Raises DataError for samples without x or y, and SettingsError for
    weights that the loss or a metric does not take. The model's own errors are not changed, such as
    a ShapeError that names the layer. Raises TrainingError for any other exception, for a loss that
    is not one number or that no parameter changes, and for a forward that replaces its parameters
    or buffers.
    """
    check_names("Trainer.fit", batch)
    check_words("Trainer.fit", batch)
    tools = job.tools()
    tools.check_weight("Trainer.fit", batch)
    x = as_inputs(nested(batch, "x"))
    whole = tools.model.vector
    before = whole.copy()  # a pass in training changes the buffers in it
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
    """Raise a DataError for a label that is not a class, if the labels are in memory.

    Other labels, and those that functions of ``SampleSet.map`` make, are checked in the iteration
    that draws them.
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
    """Raise a SettingsError if a shard's smallest part of a batch is too small for a layer."""
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


def is_ours(loss: Any) -> bool:
    """Return whether a loss is one of daskdl's, which define how shards add up."""
    module = str(getattr(loss, "__module__", ""))
    return module.startswith("daskdl.") and not module.startswith("daskdl.torch.")


def check_means(job: Job, samples: SampleSet, batch: dict[str, Any]) -> None:
    """Raise a SettingsError for a loss that is not a mean over samples, if there are shards.

    It is tried on the halves of a batch, also with the extreme labels in memory: the first batch
    may have only one class, and no label that is ignored.
    """
    target = nested(batch, "y")
    n = len(parts_of(target)[0])
    tools = job.tools()
    with (
        naming_shapes(tools.model, batch), thread_budget(job.threads),
        computing_in(job.precision), no_grad(),
    ):  # fmt: skip
        prediction = call(tools.model.eval(), as_inputs(nested(batch, "x")))
        check_halves(tools.loss, prediction, target, n)
        labels = telling_labels(samples, n)
        if labels is not None:
            check_halves(tools.loss, prediction, labels, len(labels))


def telling_labels(samples: SampleSet, n: int) -> np.ndarray[Any, Any] | None:
    """Return labels (at most n, ...) of samples in memory, the least and the greatest among them.

    None if they are not in memory, or not whole numbers.
    """
    rows: list[np.ndarray[Any, Any]] = []
    for recipe in () if samples.functions else samples.recipes:
        y = recipe.arrays.get("y") if isinstance(recipe, Arrays) else None
        if not isinstance(y, np.ndarray) or y.dtype.kind not in "iu" or not y.size:
            return None
        each_has = y.size // len(y)
        rows += [y[int(where) // each_has] for where in (y.argmin(), y.argmax())]
        rows.append(y[len(y) // 2])
    rows.sort(key=lambda row: (row.min(), row.max()))
    chosen = sorted({*np.linspace(0, len(rows) - 1, n).astype(int)}) if rows else []
    return np.stack([rows[i] for i in chosen]) if chosen else None


def check_halves(loss: Callable[..., Any], prediction: Any, target: Any, n: int) -> None:
    """Raise a SettingsError unless the loss of n samples is the mean of two halves' losses.

    The halves are the samples with the smallest and the largest own losses: with similar halves, a
    root or a loss of the hardest samples would nearly pass. When a batch is cut into shards, each
    shard has its own loss, and gradients are weighted by numbers of samples. A loss that draws
    random numbers is not tried. Prediction and target are arrays (N, ...), N at least n, or
    several.
    """

    def of(some: Any) -> float:
        def cut(x: Any) -> np.ndarray[Any, Any]:
            return np.asarray(x.data if isinstance(x, Tensor) else x)[some]

        value = loss(each(lambda x: Tensor(cut(x)), prediction), each(cut, target))
        return float(getattr(value, "data", value))

    whole = of(slice(n))
    if n < 2 or of(slice(n)) != whole:
        return
    order = np.arange(n)
    with suppress(Exception):  # of a loss that cannot be of one sample
        order = np.argsort([of(order[i : i + 1]) for i in range(n)], kind="stable")
    first, second = of(order[: n // 2]), of(order[n // 2 :])
    mean = (first * (n // 2) + second * (n - n // 2)) / n
    if abs(mean - whole) <= MEAN * max(abs(first), abs(second), abs(whole)):
        return
    raise SettingsError(
        "Trainer.fit, loss: expected a mean over samples, since a batch is cut into shards, found "
        f"{whole:.6g} for {n} samples and {first:.6g} and {second:.6g} for its halves (a sum, "
        "labels that are ignored, or weights of classes, by which it divides?); use a loss of "
        "daskdl.nn, such as CrossEntropyLoss(ignore_index=-100), or fit with shards=1"
    )


def _check_kept(model: Module, whole: Vector, before: Vector) -> None:
    """Refuse a forward that replaces tensors, and log the parameters that it has changed.

    Neither change reaches the vectors of other threads and workers.
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
