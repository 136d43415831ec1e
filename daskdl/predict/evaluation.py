"""Evaluation: the loss and the metrics of a model over samples, in this process or on a cluster."""

from __future__ import annotations

import copy
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from daskdl.cluster.attempts import until_done
from daskdl.cluster.client import Cluster
from daskdl.cluster.current import awaitable
from daskdl.cluster.failures import for_caller, naming
from daskdl.cluster.processors import precision_on, threads_of_task
from daskdl.compat.dask import TaskRef
from daskdl.data import SampleSet
from daskdl.data.functions import name_of, take
from daskdl.data.nested import nested
from daskdl.data.on_workers.shards import load_shard, spread
from daskdl.data.on_workers.tasks import check_client, each_here, graph_of, submitted
from daskdl.data.partition import Partition
from daskdl.kernels.runtime.threads import granted_cores
from daskdl.metrics import Metric
from daskdl.nn import Module
from daskdl.nn.core.arguments import as_inputs, call
from daskdl.nn.quantized import float_precision
from daskdl.predict.arguments import (
    as_samples,
    check_samples,
    check_sendable,
    metrics_by_name,
    whole,
)
from daskdl.predict.measures import Measured, Measures
from daskdl.predict.predictor import Predictor
from daskdl.predict.trial import check_evaluation
from daskdl.tensor import Tensor

if TYPE_CHECKING:
    from distributed import Client


@dataclass(frozen=True)
class Evaluation:
    """Number of samples of a partition, the sum of the loss over them, each metric's statistics."""

    samples: int
    loss: float
    statistics: Measured = field(default=(), repr=False)

    def __sizeof__(self) -> int:
        return sum(array.nbytes for by_name in self.statistics for array in by_name.values())


def evaluate_partition(
    model: Module,
    measures: Measures,
    functions: Sequence[Callable[..., Any]],
    partition: Partition,
    batch_size: int,
    seeds: tuple[int, int],
) -> Evaluation:
    """Return the evaluation of one partition by a model in inference.

    No gradients are recorded. The functions come from :meth:`SampleSet.map`; ``seeds`` for their
    Generators are a seed and the partition's number.
    """
    seed, number = seeds
    loss, measured = 0.0, list[Measured]()
    for start in range(0, len(partition), batch_size):
        chosen = np.arange(start, min(start + batch_size, len(partition)))
        batch = take(partition, chosen, functions, (seed, "validation", start, number))
        prediction = call(model, as_inputs(nested(batch, "x")))
        loss += float(measures.compare(prediction, batch, chosen)) * len(chosen)
        measured.append(measures.measure(prediction, batch))
    return Evaluation(len(partition), loss, measures.merged(measured))


def combined(measures: Measures, parts: Sequence[Evaluation]) -> list[float]:
    """Return the mean loss over the samples of all partitions, added in order, and metrics.

    Metrics are of all samples together, not means over partitions.
    """
    parts = [part for part in parts if part.samples]
    loss = sum(part.loss for part in parts) / sum(part.samples for part in parts)
    return [loss, *measures.values([part.statistics for part in parts])]


@dataclass(frozen=True)
class Evaluator:
    """A model, its measures and the functions of samples, for a task of an evaluation.

    The predictor gives each thread a copy of the model.
    """

    predictor: Predictor
    measures: Measures
    functions: Sequence[Callable[..., Any]]
    batch_size: int
    seed: int

    def __sizeof__(self) -> int:  # Dask uses it to account for a worker's memory
        return self.predictor.__sizeof__()

    def __call__(self, source: Any, number: int, *inputs: Any) -> Evaluation:
        """Load a recipe, or make a partition of inputs, and evaluate it."""
        partition = load_shard(source, number, *inputs)
        with naming(f"validation, shard {number}"), self.predictor.at_work(joined=False) as model:
            # A loss may be a Module, which one thread may call at a time.
            measures = replace(self.measures, loss=copy.deepcopy(self.measures.loss))
            seeds = self.seed, number
            return evaluate_partition(
                model, measures, self.functions, partition, self.batch_size, seeds
            )

    def for_sending(self, where: str) -> Evaluator:
        """Return an evaluator for sending; raise SettingsError for parts that cannot be sent."""
        parts = {
            "loss": self.measures.loss,
            "metrics": self.measures.metrics,
            "functions": self.functions,
        }
        check_sendable(where, parts)
        return replace(self, predictor=self.predictor.snapshot())


@awaitable
def evaluate(
    model: Module,
    samples: Any,
    metrics: Sequence[Metric] | Mapping[str, Metric] = (),
    *,
    y: Any = None,
    loss: Callable[..., Any] | None = None,
    batch_size: int = 32,
    threads: int | None = None,
    client: Client | None = None,
    precision: str = "float32",
) -> dict[str, float]:
    """Return metrics of a model, and its mean loss if one is given; see Module.evaluate.

    Examples
    --------
    >>> from daskdl.data import SampleSet
    >>> from daskdl.metrics import Accuracy
    >>> samples = SampleSet.from_arrays(x=np.eye(2), y=np.array([0, 1]))
    >>> model = nn.Linear(2, 2)
    >>> model.load_state_dict({"weight": np.eye(2), "bias": np.zeros(2)})
    >>> evaluate(model, samples, [Accuracy()], client=False)
    {'accuracy': 1.0}
    """
    precision = float_precision("evaluate", model, precision)
    named = metrics_by_name("evaluate", metrics, {"loss"})
    measures = Measures(loss or no_loss, tuple(named.values()))
    samples = as_samples("evaluate", samples, y, model)
    values = evaluate_samples(
        "evaluate", model, measures, samples, batch_size=batch_size, threads=threads,
        client=client, precision=precision,
    )  # fmt: skip
    by_name = dict(zip(["loss", *named], values, strict=True))
    return by_name if loss is not None else {n: v for n, v in by_name.items() if n != "loss"}


def no_loss(prediction: Any, target: Any, sample_weight: Any = None) -> Tensor:
    """Return 0, if there is no loss."""
    return Tensor(np.zeros((), np.float32))


def evaluate_samples(
    where: str,
    model: Module,
    measures: Measures,
    samples: SampleSet,
    *,
    batch_size: int,
    threads: int | None,
    client: Client | None,
    seed: int = 0,
    precision: str = "float32",
) -> list[float]:
    """Return the mean loss over samples, and each metric of them.

    One task loads a partition and evaluates it, so that each thread holds at most one partition;
    data on workers are used there. ``batch_size`` samples pass through the model at a time, with
    ``threads`` arithmetic threads of a task. Without a client the tasks run in this process.
    ``seed`` is for the Generators of the samples' functions; ``where`` begins errors.
    """
    check_samples(where, samples)
    if client is not None:
        check_client(where, samples.known, client)
    samples.counted(client)
    batch_size = whole(f"{where}, batch_size", batch_size)
    if threads is None:
        threads = threads_of_task(client, samples.partitions, "start of the evaluation")
    else:
        threads = whole(f"{where}, threads", threads)
    precision = precision_on(precision, client)
    predictor = Predictor(model, threads=threads, precision=precision)
    with predictor.at_work() as copied:
        check_evaluation(where, copied, measures, samples.head(1))
    evaluator = Evaluator(predictor, measures, samples.functions, batch_size, seed)
    if client is not None:
        return combined(measures, _on_workers(evaluator.for_sending(where), samples, client))
    at_once = min(max(1, granted_cores() // threads), samples.partitions)
    with for_caller():
        return combined(measures, each_here(dict(enumerate(samples.recipes)), evaluator, at_once))


def _on_workers(evaluator: Evaluator, samples: SampleSet, client: Client) -> list[Evaluation]:
    """Evaluate partitions on their workers; begin again if data were lost with workers."""
    cluster, name, purpose = Cluster(client), uuid.uuid4().hex[:12], "evaluation"

    def attempt() -> list[Evaluation]:
        recipes = dict(enumerate(spread(samples.recipes, cluster, purpose)))
        # A name of its own, or it would be deleted together with an earlier attempt's.
        sent = cluster.broadcast(f"evaluator-{name}-{uuid.uuid4().hex[:8]}", evaluator, purpose)
        more = {"evaluator": TaskRef(sent.key)}
        graph, behind = graph_of(recipes, lambda i: (f"evaluate-{name}", 0, i), _evaluated, more)
        # Otherwise Dask would give further tasks to a stopped worker.
        there = list(cluster.workers(purpose)) if cluster.silent(purpose) else None
        futures = submitted(client, {**behind, **graph}, list(graph), there)
        try:
            cluster.wait(futures, purpose)
            return cluster.fetch(futures)
        finally:
            for future in futures:  # an exception's traceback would keep them, and their tasks
                future.release()

    functions = [name_of(function) for function in samples.functions]
    return until_done(cluster, purpose, attempt, lambda: None, functions)


def _evaluated(source: Any, number: int, *inputs: Any, evaluator: Evaluator) -> Evaluation:
    return evaluator(source, number, *inputs)
