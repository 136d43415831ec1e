"""Measuring: a loss and metrics of samples, no partition of which is held longer than it takes."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from daskdl.cluster.failures import for_caller
from daskdl.data import SampleSet
from daskdl.data.on_workers.tasks import each_here
from daskdl.kernels.runtime.threads import granted_cores
from daskdl.train.evaluation import combined, loaded
from daskdl.train.job import Job
from daskdl.train.step import State, Vector

if TYPE_CHECKING:
    from distributed import Client


def measured(
    job: Job, weights: Vector, samples: SampleSet, batch_size: int, client: Client | None
) -> list[float]:
    """Return the mean loss over samples, and each metric of them.

    One task loads a partition and evaluates it, so that never more of them are in memory than there
    are threads at work; what Dask holds already is used where it lies.

    Parameters
    ----------
    job : Job
        Its validation functions are those of the samples.
    weights : float32 (n,)
    samples : SampleSet
    batch_size : int
        Samples that pass through the model at a time.
    client : distributed.Client, optional
        Without one it is done in this process.
    """
    if client is not None:
        from daskdl.train.passing import Passing

        engine = Passing(client, job, samples)
        try:
            return engine.evaluate(State(weights, {}, 0), batch_size)
        finally:
            engine.close()
    threads = min(max(1, granted_cores() // job.threads), samples.partitions)
    one = partial(loaded, given=(job, weights), batch_size=batch_size)
    with for_caller():
        return combined(job, each_here(dict(enumerate(samples.recipes)), one, threads))
