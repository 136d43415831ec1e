"""Whole batches: predictions of all shards, for a loss that compares each sample with all others.

An iteration has a forward pass without gradients, after which all shards know all predictions, and
a second one for the gradients of a shard's own predictions. L. Gao et al., arXiv 2101.06983.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from daskdl.cluster.failures import naming
from daskdl.data.nested import nested
from daskdl.data.partition import Batch, Indices, Partition
from daskdl.kernels.runtime.precision import computing_in
from daskdl.kernels.runtime.threads import thread_budget
from daskdl.nn import drawing
from daskdl.nn.core.arguments import as_arrays, as_inputs, call
from daskdl.tensor import no_grad
from daskdl.train.engines.ahead import drawn
from daskdl.train.engines.gradient import Gradient
from daskdl.train.engines.job import Job
from daskdl.train.engines.step import Vector, gradient, layers_seed, with_weights


def predictions(
    job: Job,
    weights: Vector,
    partition: Partition,
    at: tuple[int, int, int],
    shard: int,
    start: int,
    count: int,
    draw: Callable[[], tuple[Indices, Batch]] | None = None,
) -> tuple[Any, ...]:
    """Return a model's predictions of a shard's samples in one iteration, a tuple of arrays.

    For the arguments see :func:`~daskdl.train.engines.step.gradient`.
    """
    with thread_budget(job.threads), computing_in(job.precision), naming(f"shard {shard}"):
        _, batch = draw() if draw else drawn(job, partition, shard, (at, start, count))
        model = with_weights(job, weights)
        before = model.joined.buffers.copy()
        with no_grad(), drawing(partial(layers_seed, job, at, shard)):
            prediction = as_arrays(call(model, as_inputs(nested(batch, "x"))))
        model.joined.buffers[:] = before
        return prediction if isinstance(prediction, tuple) else (prediction,)


def gradient_in_batch(
    job: Job,
    weights: Vector,
    partition: Partition,
    at: tuple[int, int, int],
    shard: int,
    start: int,
    count: int,
    shards: Sequence[int],
    *values: tuple[Any, ...],
) -> Gradient:
    """Return a shard's gradient, given the predictions of all shards with samples."""
    predicted = dict(zip(shards, values, strict=True))
    return gradient(job, weights, partition, at, shard, start, count, predicted=predicted)
