"""Passing: an evaluation on a cluster whose partitions pass through the workers' memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dask._task_spec import TaskRef

from daskdl.data import SampleSet
from daskdl.data.on_workers.spreading import spread
from daskdl.data.on_workers.tasks import graph_of, submitted
from daskdl.train.evaluation import Evaluation, loaded
from daskdl.train.job import Job
from daskdl.train.on_cluster import OnCluster
from daskdl.train.step import State

if TYPE_CHECKING:
    from distributed import Client


class Passing(OnCluster):
    """Evaluate samples where Dask likes, which is where they lie; begin again when data are lost.

    Parameters
    ----------
    client : distributed.Client
    job : Job
    samples : SampleSet
    """

    def __init__(self, client: Client, job: Job, samples: SampleSet) -> None:
        super().__init__(client, job, samples, None)
        self._client, self._samples = client, samples

    def _evaluate(self, state: State, batch_size: int, what: str) -> list[Evaluation]:
        recipes = dict(enumerate(spread(self._samples.recipes, self._cluster, what)))
        name = f"{self._job.id}-{self._attempt}"
        given = self._cluster.broadcast(f"given-{name}", (self._job, state.weights), what)
        more: dict[str, Any] = {"given": TaskRef(given.key), "batch_size": batch_size}
        graph, behind = graph_of(recipes, lambda s: (f"evaluate-{name}", 0, s), loaded, more)
        futures = submitted(self._client, {**behind, **graph}, list(graph))
        try:
            self._cluster.wait(futures, what)
            return self._cluster.fetch(futures)
        finally:
            for future in futures:  # an exception's traceback would keep them, and their tasks
                future.release()
