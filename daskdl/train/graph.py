"""The graph engine: a group of iterations is one Dask graph, and lineage its recovery."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from dask._task_spec import Task, TaskRef
from dask.typing import Key

from daskdl.data import SampleSet
from daskdl.data.batches import Share
from daskdl.errors import ClusterError
from daskdl.train import step
from daskdl.train.channel import LOST, Cluster
from daskdl.train.job import Job
from daskdl.train.placement import Place, assign
from daskdl.train.settings import setting
from daskdl.train.step import State, TaskError
from daskdl.train.tree import fold

if TYPE_CHECKING:
    from distributed import Client, Future

logger = logging.getLogger(__name__)

Graph = dict[Key, Any]


def group_graph(
    run: str,
    attempt: int,
    state: State,
    state_key: Key,
    job: Key,
    parts: Sequence[Key],
    shares: Sequence[Share],
) -> tuple[Graph, Key]:
    """Return the tasks of a group of iterations, and the key of the state at its end.

    Every key ends with the shard at whose worker the task belongs. The weights live with shard 0;
    whoever computes a gradient fetches them.
    """
    graph: Graph = {}

    def put(name: str, *place: int) -> Key:
        return (f"{name}-{run}", attempt, *place)

    weights = put("weights", state.iteration, 0)
    graph[weights] = Task(weights, step.weights_of, TaskRef(state_key))
    for t, share in enumerate(shares, state.iteration):

        def gradient(s: int, t: int = t, share: Share = share, weights: Key = weights) -> Key:
            key = put("gradient", t, s)
            graph[key] = Task(
                key,
                step.gradient,
                TaskRef(job),
                TaskRef(weights),
                TaskRef(parts[s]),
                (t, share.epoch, share.iteration),
                s,
                int(share.starts[s]),
                int(share.counts[s]),
            )
            return key

        def add(level: int, shard: int, left: Key, right: Key, t: int = t) -> Key:
            key = put("sum", t, level, shard)
            graph[key] = Task(key, step.add, TaskRef(left), TaskRef(right))
            return key

        roots = fold([gradient(s) if n else None for s, n in enumerate(share.counts)], add)
        inputs = TaskRef(job), attempt, TaskRef(state_key), *map(TaskRef, roots)
        state_key, weights = put("update", t, 0), put("weights", t + 1, 0)
        graph[state_key] = Task(state_key, step.next_state, *inputs)
        if t + 1 < state.iteration + len(shares):
            graph[weights] = Task(weights, step.next_weights, *inputs)
    return graph, state_key


class GraphEngine:
    """Run groups of iterations as Dask graphs.

    Between groups the state passes through the client: the scheduler forgets the tasks behind it,
    and the client can begin a group again when more was lost than lineage brings back.

    Parameters
    ----------
    client : distributed.Client
    job : Job
    samples : SampleSet
    validation : SampleSet, optional
    """

    def __init__(
        self, client: Client, job: Job, samples: SampleSet, validation: SampleSet | None
    ) -> None:
        self._cluster, self._job = Cluster(client), job
        self._training = Shards(self._cluster, f"{job.id}", samples)
        self._validation = (
            Shards(self._cluster, f"validation-{job.id}", validation) if validation else None
        )
        # A graph is taken in by the scheduler in one go, at some 50 microseconds a task.
        self.group_limit = max(1, 4000 // (2 * samples.partitions + 1))
        self._attempt = 0
        self._job_future: Future | None = None
        self._state: tuple[State, Future] | None = None

    def run(self, state: State, shares: Sequence[Share]) -> State:
        """Return the state after the iterations that ``shares`` describe.

        Raises
        ------
        TrainingError
            For an exception in a task, with the iteration and the shard.
        ClusterError
            When the workers or the scheduler are lost and do not come back in time.
        """
        what = f"iterations {state.iteration} to {state.iteration + len(shares) - 1}"
        clean = State(state.weights, state.slots, state.iteration)
        result = self._until_done(what, lambda: self._run(clean, shares, what))
        assert isinstance(result, State)
        return result

    def evaluate(self, state: State, batch_size: int) -> list[float]:
        """Return the mean over all validation samples of the loss and of each metric."""
        what = f"validation after iteration {state.iteration - 1}"
        clean = State(state.weights, state.slots, state.iteration)
        return step.mean_over_shards(
            self._until_done(what, lambda: self._evaluate(clean, batch_size, what))
        )

    def close(self) -> None:
        """Let the workers forget the samples and the state."""
        self._forget()

    # --- one attempt

    def _run(self, state: State, shares: Sequence[Share], what: str) -> State:
        place = self._training.placed(self._cluster.workers(what))
        job, state_key = self._sent(state, place.addresses[0])
        graph, last = group_graph(
            self._job.id, self._attempt, state, state_key, job, self._training.keys, shares
        )
        # The result passes through the client and is sent again: this cuts the lineage.
        (result,) = self._cluster.compute(graph, [last], place, what)
        self._state = None
        return result

    def _evaluate(self, state: State, batch_size: int, what: str) -> list[Any]:
        assert self._validation is not None
        place = self._validation.placed(self._cluster.workers(what))
        job, state_key = self._sent(state, place.addresses[0])
        names = f"weights-{self._job.id}", f"evaluate-{self._job.id}"
        weights = (names[0], self._attempt, state.iteration, 0)
        graph: Graph = {weights: Task(weights, step.weights_of, TaskRef(state_key))}
        keys: list[Key] = []
        for s, part in enumerate(self._validation.keys):
            key = (names[1], self._attempt, state.iteration, s)
            inputs = TaskRef(job), TaskRef(weights), TaskRef(part)
            graph[key] = Task(key, step.evaluate, *inputs, s, batch_size)
            keys.append(key)
        return self._cluster.compute(graph, keys, place, what)

    def _sent(self, state: State, owner: str) -> tuple[Key, Key]:
        """Send what is not there yet, and return the keys of the job and of the state."""
        if self._job_future is None:
            self._job_future = self._cluster.send(
                f"job-{self._job.id}-{self._attempt}", self._job, owner
            )
        held = self._state
        if held is None or held[0].iteration != state.iteration:
            name = f"state-{self._job.id}-{self._attempt}-{state.iteration}"
            self._state = held = state, self._cluster.send(name, state, owner)
        return self._job_future.key, held[1].key

    # --- attempts

    def _until_done(self, what: str, attempt: Any) -> Any:
        tries = int(setting("attempts"))
        for left in reversed(range(tries)):
            self._attempt += 1
            try:
                return attempt()
            except TaskError as error:
                raised, cause = error.for_caller()
                raise raised from cause
            except LOST as error:
                self._cluster.check_scheduler(what, error)
                if not left:
                    raise ClusterError(
                        f"{what}: tried {tries} times, each time data were lost with their "
                        f"workers, at last by {type(error).__name__}: {error}; see the workers' "
                        "logs, for example for too little memory"
                    ) from error
                logger.warning("%s: starting again, since %s", what, _first_line(error))
                self._forget()

    def _forget(self) -> None:
        self._job_future = self._state = None
        for shards in (self._training, self._validation):
            if shards is not None:
                shards.forget()


class Shards:
    """The loaded partitions of a SampleSet and where they lie.

    Parameters
    ----------
    cluster : Cluster
    name : str
        Part of the keys.
    samples : SampleSet
    """

    def __init__(self, cluster: Cluster, name: str, samples: SampleSet) -> None:
        self._cluster, self._name, self._samples = cluster, name, samples
        self._futures: dict[int, Future] = {}
        self._recipes: dict[int, Future] = {}
        self._version = 0

    @property
    def keys(self) -> list[Key]:
        """Key of every shard."""
        return [self._futures[s].key for s in range(self._samples.partitions)]

    def placed(self, workers: dict[str, int]) -> Place:
        """Load shards that are not there, move those that lie badly, and say where each is."""
        n = self._samples.partitions
        holders = self._cluster.holders([self._futures.get(s) for s in range(n)], workers)
        owners = assign(holders, workers)
        moving = [s for s in range(n) if s not in self._futures or owners[s] != holders[s]]
        place = Place(owners)
        if moving:
            self._load(moving, place)
        return place

    def forget(self) -> None:
        """Let the workers forget the shards."""
        self._futures.clear()
        self._recipes.clear()

    def _load(self, shards: Iterable[int], place: Place) -> None:
        self._version += 1
        graph: Graph = {}
        for s in shards:
            self._futures.pop(s, None)
            key, recipe = (f"load-{self._name}", self._version, s), self._samples.recipes[s]
            carried: Any = recipe
            if recipe.in_memory:
                # Data must not pass through the scheduler.
                name = f"samples-{self._name}-{self._version}-{s}"
                self._recipes[s] = self._cluster.send(name, recipe, place.addresses[s])
                carried = TaskRef(self._recipes[s].key)
            graph[key] = Task(key, step.load, carried, s)
        keys = list(graph)
        for key, future in zip(keys, self._cluster.submit(graph, keys, place), strict=True):
            self._futures[int(key[-1])] = future


def _first_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
