"""Options of a Trainer and of a fit, with their checks; warnings of probable mistakes."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.collective.codec import check_wire
from daskdl.errors import SettingsError
from daskdl.metrics import BinaryAccuracy, Metric
from daskdl.nn import BCEWithLogitsLoss, CrossEntropyLoss, Module, MultiLoss, NLLLoss
from daskdl.nn.core.arguments import as_arrays, parts_of
from daskdl.optim import Method
from daskdl.predict.arguments import whole, wrong
from daskdl.train.engines.choice import check_engine
from daskdl.train.fit.callback import Callback, check_callbacks


@dataclass(frozen=True)
class FitOptions:
    """Arguments of :meth:`daskdl.train.Trainer.fit` except samples and client, checked.

    Raises SettingsError for the first invalid one.
    """

    epochs: int | None
    iterations: int | None
    batch_size: int
    shards: int | None
    validation: Any
    callbacks: Sequence[Callback]
    checkpoint: str | os.PathLike[str] | None
    checkpoint_every: int | None
    resume: bool
    engine: str
    threads: int | None
    wire: str
    progress: bool
    shuffle: str
    training_metrics: bool

    def __post_init__(self) -> None:
        check_engine(self.engine)
        check_callbacks(self.callbacks)
        self.total(1)
        for name in ("shards", "batch_size", "threads", "checkpoint_every"):
            value = getattr(self, name)
            if value is not None or name == "batch_size":
                object.__setattr__(self, name, whole(f"Trainer.fit, {name}", value))
        check_wire(self.wire)

    def total(self, per_epoch: int) -> int:
        """Return the iterations of a run whose epochs have ``per_epoch``."""
        if (self.epochs is None) == (self.iterations is None):
            raise SettingsError(
                f"Trainer.fit: expected either epochs or iterations, found epochs={self.epochs!r} "
                f"and iterations={self.iterations!r}; give one of the two"
            )
        if self.epochs is None:
            return whole("Trainer.fit, iterations", self.iterations)
        return whole("Trainer.fit, epochs", self.epochs) * per_epoch


logger = logging.getLogger("daskdl.train.fit.trainer")

#: How far from 1 a sum of probabilities may be.
NEAR = 1e-3


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
    if not _of_torch(loss) and not str(getattr(loss, "__module__", "")).startswith("torch."):
        return loss
    from daskdl.torch import TorchLoss

    return TorchLoss(loss)


def _of_torch(thing: Any) -> bool:
    """Return whether something is a module of torch, without importing it."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(thing, torch.nn.Module)


def say_what_is_odd(trainer: Any, prediction: Any, batch_size: int, samples: int) -> None:
    """Log probable mistakes once a fit: :func:`suspicions`, and caveats of modules."""
    for name, module in trainer.model.modules():
        if module.caveat:
            logger.warning("%s: %s", name or type(module).__name__, module.caveat)
    for sentence in suspicions(trainer.loss, trainer.metrics, prediction):
        logger.warning("Trainer.fit: %s", sentence)
    if batch_size > samples:
        logger.warning(
            "Trainer.fit: batch_size %d is more than the %d samples, so that each iteration is "
            "an epoch and has all of them; give a smaller one for more iterations",
            batch_size,
            samples,
        )


def suspicions(loss: Any, metrics: Mapping[str, Metric], prediction: Any) -> Iterator[str]:
    """Yield a sentence for each probable mistake, by the model's results for some samples."""
    arrays = as_arrays(prediction)
    losses = list(loss.losses) if isinstance(loss, MultiLoss) else [loss]
    results = parts_of(arrays)
    for one, result in zip(losses, results, strict=False):
        yield from _of_loss(one, result)
    logits = isinstance(losses[0], BCEWithLogitsLoss)
    for name, metric in metrics.items():
        if isinstance(metric, BinaryAccuracy) and metric.threshold == 0.5 and results:
            outside = bool((results[0] < 0).any() or (results[0] > 1).any())
            if outside or logits:
                yield (
                    f"metric {name!r}: expected probabilities, to compare with its threshold of "
                    "0.5, found logits; BinaryAccuracy(threshold=0.0) takes logits"
                )
        elif getattr(metric, "bins", None) is not None and logits:
            yield (
                f"metric {name!r}: expected probabilities, for its bins from 0 to 1, found "
                "logits; leave bins out"
            )


def _of_loss(loss: Any, result: NDArray[Any]) -> Iterator[str]:
    if not isinstance(result, np.ndarray) or not result.ndim or not result.size:
        return
    numbers = result.astype(np.float64)
    if isinstance(loss, NLLLoss) and numbers.ndim > 1:
        with np.errstate(over="ignore"):
            sums = np.exp(numbers).sum(-1)
        if np.abs(sums - 1).max() > NEAR:
            yield (
                "NLLLoss: expected logarithms of probabilities, whose exponentials add up to 1, "
                f"found a sum of {sums.flat[0]:.3g}; put LogSoftmax() behind the model, or take "
                "CrossEntropyLoss, which takes logits"
            )
    elif isinstance(loss, CrossEntropyLoss) and numbers.shape[-1] > 1:
        sums = numbers.sum(-1)
        if (numbers >= 0).all() and np.abs(sums - 1).max() < NEAR:
            yield (
                "CrossEntropyLoss: expected logits, found probabilities, which add up to 1; leave "
                "the model's Softmax out, or take LogSoftmax and NLLLoss"
            )
