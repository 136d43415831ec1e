"""Evaluation: a shard's part of a validation, and the loss and metrics of all parts together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from daskdl.cluster.failures import naming
from daskdl.data.functions import take
from daskdl.data.on_workers.shards import load_shard
from daskdl.data.partition import Partition
from daskdl.kernels.runtime.threads import thread_budget
from daskdl.nn.inputs import as_inputs
from daskdl.tensor import no_grad
from daskdl.train.job import Job, Measured
from daskdl.train.step import Vector


@dataclass(frozen=True)
class Evaluation:
    """A shard's number of samples, the sum of the loss over them, and each metric's statistics."""

    samples: int
    loss: float
    statistics: Measured = field(default=(), repr=False)

    def __sizeof__(self) -> int:
        return sum(array.nbytes for held in self.statistics for array in held.values())


def evaluate(
    job: Job, weights: Vector, partition: Partition, shard: int, batch_size: int
) -> Evaluation:
    """Return a shard's part of a validation."""
    with thread_budget(job.threads), naming(f"validation, shard {shard}"), no_grad():
        tools = job.tools()
        model = tools.model.eval()
        model.restore(weights, copy=False)
        loss, found = 0.0, list[Measured]()
        for start in range(0, len(partition), batch_size):
            chosen = np.arange(start, min(start + batch_size, len(partition)))
            draw = (job.seed, "validation", start, shard)
            batch = take(partition, chosen, tools.validation_functions, draw)
            prediction = model(as_inputs(batch["x"]))
            loss += float(tools.compare(prediction, batch)) * len(chosen)
            found.append(tools.measure(prediction, batch))
        return Evaluation(len(partition), loss, tools.merged(found))


def loaded(
    what: Any, shard: int, *inputs: Partition, given: tuple[Job, Vector], batch_size: int
) -> Evaluation:
    """Load a recipe, or make a partition of the inputs, and evaluate it by a job and weights."""
    job, weights = given
    return evaluate(job, weights, load_shard(what, shard, *inputs), shard, batch_size)


def combined(job: Job, parts: Sequence[Evaluation]) -> list[float]:
    """Return the mean loss over the samples of all shards, added in their order, and the metrics.

    Metrics are those of all samples together, not means of what they are of each shard.
    """
    parts = [part for part in parts if part.samples]
    loss = sum(part.loss for part in parts) / sum(part.samples for part in parts)
    return [loss, *job.tools().values([part.statistics for part in parts])]
