"""Validation of a job's weights: its part of one shard."""

from __future__ import annotations

from daskdl.cluster.failures import naming
from daskdl.data.partition import Partition
from daskdl.kernels.runtime.precision import computing_in
from daskdl.kernels.runtime.threads import thread_budget
from daskdl.predict.evaluation import Evaluation, evaluate_partition
from daskdl.tensor import no_grad
from daskdl.train.engines.job import Job
from daskdl.train.engines.step import Vector


def evaluate(
    job: Job, weights: Vector, partition: Partition, shard: int, batch_size: int
) -> Evaluation:
    """Return a shard's part of a validation."""
    budget, where = thread_budget(job.threads), naming(f"validation, shard {shard}")
    with budget, computing_in(job.precision), where, no_grad():
        tools = job.tools()
        model = tools.model.eval()
        model.restore(weights, copy=False)
        functions, seeds = tools.validation_functions, (job.seed, shard)
        return evaluate_partition(model, tools, functions, partition, batch_size, seeds)
