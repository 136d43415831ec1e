"""OnCluster, the base of engines on a Dask cluster: attempts, validation, and sending."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import cloudpickle

from daskdl.cluster.attempts import until_done
from daskdl.cluster.client import Cluster
from daskdl.cluster.processors import bits
from daskdl.cluster.starting.workers import are_reached, interrupts_are_the_drivers
from daskdl.compat.dask import Task, TaskRef
from daskdl.data import SampleSet
from daskdl.data.batches import Share
from daskdl.data.functions import name_of
from daskdl.data.on_workers.shards import Shards
from daskdl.predict.evaluation import Evaluation, combined
from daskdl.train.engines import step
from daskdl.train.engines.job import Job, evaluate
from daskdl.train.engines.step import State

if TYPE_CHECKING:
    from dask.typing import Key
    from distributed import Client, Future

logger = logging.getLogger(__name__)

#: Seconds that workers have to answer; they need most of them to import the computing modules.
ANSWER = 10.0


def warn_if_mixed(cluster: Cluster, purpose: str) -> None:
    """Log one sentence if the workers' results are not the same bits.

    Workers that do not answer in time do not count.
    """
    message = {"op": "run", "function": cloudpickle.dumps(bits), "args": cloudpickle.dumps(())}
    by_result: defaultdict[str, list[str]] = defaultdict(list)
    for address, answer in sorted(cluster.tell(message, ANSWER).items()):
        if isinstance(answer, dict) and answer.get("status") == "OK":
            by_result[str(answer["result"])].append(address)
    if len(by_result) > 1:
        logger.warning(
            "%s: expected workers of one kind, found %s; which of them has a shard decides the "
            "last bits: install the same packages on all, and MKL nowhere unless their processors "
            "are the same",
            purpose, "; ".join(f"{text} ({_some(them)})" for text, them in by_result.items()),
        )  # fmt: skip


def _some(addresses: list[Any]) -> str:
    more = f" and {len(addresses) - 2} more" if len(addresses) > 2 else ""
    return f"{', '.join(addresses[:2])}{more}"


T = TypeVar("T")


class OnCluster:
    """The samples of a run on its workers, and attempts at computations on them."""

    def __init__(
        self, client: Client, job: Job, samples: SampleSet, validation: SampleSet | None
    ) -> None:
        self._cluster, self._job = Cluster(client), job
        self._training = Shards(self._cluster, f"{job.id}", samples)
        self._validation = (
            Shards(self._cluster, f"validation-{job.id}", validation) if validation else None
        )
        functions = (*samples.functions, *(validation.functions if validation else ()))
        self._functions = tuple(dict.fromkeys(name_of(function) for function in functions))
        self._attempt = 0
        self._job_future: Future | None = None
        self._state: tuple[State, Future] | None = None
        if are_reached(client):
            self._cluster.install(interrupts_are_the_drivers(), "start of the fit")
        warn_if_mixed(self._cluster, "start of the fit")

    def run(self, state: State, shares: Sequence[Share]) -> State:
        """Return the state after the iterations that ``shares`` describe.

        Raises TrainingError, with the iteration and the shard, for an exception in a task, and
        ClusterError when the workers or the scheduler are lost and do not come back in time.
        """
        name = f"iterations {state.iteration} to {state.iteration + len(shares) - 1}"
        clean = State(state.weights, state.slots, state.iteration)
        return self._until_done(name, lambda: self._run(clean, shares, name))

    def _run(self, state: State, shares: Sequence[Share], purpose: str) -> State:
        """Make one attempt at :meth:`run`."""
        raise NotImplementedError

    def evaluate(self, state: State, batch_size: int) -> list[float]:
        """Return the mean loss over all validation samples, and each metric of them."""
        name = f"validation after {state.iteration} iterations"
        clean = State(state.weights, state.slots, state.iteration)
        parts = self._until_done(name, lambda: self._evaluate(clean, batch_size, name))
        return combined(self._job.tools(), parts)

    def forget_state(self) -> None:
        """Note that the driver has changed the state: it is sent again next time."""
        self._state = None

    def close(self) -> None:
        """Let the workers forget the samples and the state."""
        self._forget()

    def _evaluate(self, state: State, batch_size: int, purpose: str) -> list[Evaluation]:
        assert self._validation is not None
        place = self._validation.placed(self._cluster.workers(purpose))
        job, state_key = self._sent(state, place.addresses[0])
        names = f"weights-{self._job.id}", f"evaluate-{self._job.id}"
        weights = (names[0], self._attempt, state.iteration, 0)
        graph: dict[Key, Any] = {weights: Task(weights, step.weights_of, TaskRef(state_key))}
        keys: list[Key] = []
        for s, part in enumerate(self._validation.keys):
            key = (names[1], self._attempt, state.iteration, s)
            inputs = TaskRef(job), TaskRef(weights), TaskRef(part)
            graph[key] = Task(key, evaluate, *inputs, s, batch_size)
            keys.append(key)
        return self._cluster.compute(graph, keys, place, purpose)

    def _sent(self, state: State, owner: str) -> tuple[Key, Key]:
        """Send the job and the state unless the workers have them; return their keys."""
        job = self._sent_job(owner)
        sent = self._state
        if sent is None or sent[0].iteration != state.iteration:
            # To Dask it is of one group with the job, which stays: of a group that comes again and
            # again scheduler and workers keep something for each time.
            name = f"job-{self._job.id}-{self._attempt}-state-{state.iteration}"
            self._state = sent = state, self._cluster.send(name, state, owner)
        return job, sent[1].key

    def _sent_job(self, owner: str) -> Key:
        if self._job_future is None:
            self._job_future = self._cluster.send(
                f"job-{self._job.id}-{self._attempt}", self._job, owner
            )
        return self._job_future.key

    # --- attempts

    def _until_done(self, purpose: str, attempt: Callable[[], T]) -> T:
        def one() -> T:
            self._attempt += 1
            return attempt()

        return until_done(self._cluster, purpose, one, self._after_loss, self._functions)

    def _after_loss(self) -> None:
        """Release data that may be lost, before another attempt."""
        self._forget()

    def _forget(self) -> None:
        self._job_future = self._state = None
        for shards in (self._training, self._validation):
            if shards is not None:
                shards.forget()
