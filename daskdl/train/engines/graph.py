"""The graph engine: a group of iterations is one Dask graph, and lineage its recovery."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from daskdl.collective.plan import fold
from daskdl.compat.dask import Task, TaskRef
from daskdl.data import SampleSet
from daskdl.data.batches import Share
from daskdl.train.engines import step, whole_batch
from daskdl.train.engines.gradient import add as add_gradients
from daskdl.train.engines.job import Job
from daskdl.train.engines.on_cluster import OnCluster
from daskdl.train.engines.step import State

if TYPE_CHECKING:
    from dask.typing import Key
    from distributed import Client

Graph: TypeAlias = "dict[Key, Any]"


def group_graph(
    run: str,
    attempt: int,
    state: State,
    state_key: Key,
    job: Key,
    parts: Sequence[Key],
    shares: Sequence[Share],
    rounded: int = 0,
    threads: int = 1,
    compares_all: bool = False,
) -> tuple[Graph, Key]:
    """Return the tasks of a group of iterations, and the key of the state at its end.

    Every key ends with the shard at whose worker the task belongs. The weights lie with shard 0;
    tasks of other shards fetch them.
    """
    graph: Graph = {}

    def put(name: str, *place: int) -> Key:
        return (f"{name}-{run}", attempt, *place)

    weights = put("weights", state.iteration, 0)
    graph[weights] = Task(weights, step.weights_of, TaskRef(state_key))
    for t, share in enumerate(shares, state.iteration):

        def of_shard(
            name: str,
            function: Any,
            s: int,
            more: Sequence[Any] = (),
            t: int = t,
            share: Share = share,
            weights: Key = weights,
        ) -> Key:
            key = put(name, t, s)
            graph[key] = Task(
                key,
                function,
                TaskRef(job),
                TaskRef(weights),
                TaskRef(parts[s]),
                (t, share.epoch, share.iteration),
                s,
                int(share.starts[s]),
                int(share.counts[s]),
                *more,
            )
            return key

        def add(level: int, shard: int, left: Key, right: Key, t: int = t) -> Key:
            key = put("sum", t, level, shard)
            graph[key] = Task(key, add_gradients, TaskRef(left), TaskRef(right), rounded, threads)
            return key

        busy = [s for s, n in enumerate(share.counts) if n]
        gradient = partial(of_shard, "gradient", step.gradient)
        if compares_all:
            keys = [of_shard("prediction", whole_batch.predictions, s) for s in busy]
            more = tuple(busy), *map(TaskRef, keys)
            gradient = partial(of_shard, "gradient", whole_batch.gradient_in_batch, more=more)
        roots = fold([gradient(s) if n else None for s, n in enumerate(share.counts)], add)
        inputs = TaskRef(job), attempt, TaskRef(state_key), *map(TaskRef, roots)
        state_key, weights = put("update", t, 0), put("weights", t + 1, 0)
        graph[state_key] = Task(state_key, step.next_state, *inputs)
        if t + 1 < state.iteration + len(shares):
            graph[weights] = Task(weights, step.next_weights, *inputs)
    return graph, state_key


class GraphEngine(OnCluster):
    """Run groups of iterations as Dask graphs.

    Between groups the state passes through the client. So the scheduler forgets earlier tasks, and
    the client can run a group again when lineage cannot restore all that was lost.
    """

    def __init__(
        self, client: Client, job: Job, samples: SampleSet, validation: SampleSet | None
    ) -> None:
        super().__init__(client, job, samples, validation)
        # A graph is taken in by the scheduler in one go, at some 50 microseconds a task.
        self.group_limit = max(1, 4000 // (2 * samples.partitions + 1))

    def _run(self, state: State, shares: Sequence[Share], purpose: str) -> State:
        place = self._training.placed(self._cluster.workers(purpose))
        job, state_key = self._sent(state, place.addresses[0])
        graph, last = group_graph(
            self._job.id,
            self._attempt,
            state,
            state_key,
            job,
            self._training.keys,
            shares,
            self._job.rounded,
            self._job.threads,
            self._job.whole_batch,
        )
        # The result passes through the client and is sent again: this cuts the lineage.
        (result,) = self._cluster.compute(graph, [last], place, purpose)
        self._state = None
        return result
