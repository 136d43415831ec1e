"""The steps of an iteration as pure functions: tasks in a graph, or calls in one process."""

from __future__ import annotations

import pickle
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import cloudpickle
import numpy as np
from numpy.typing import NDArray

from daskdl.data.batches import positions
from daskdl.data.partition import Partition, Recipe
from daskdl.data.random import generator
from daskdl.data.samples import take
from daskdl.errors import TrainingError
from daskdl.kernels.memory import empty
from daskdl.kernels.threads import thread_budget
from daskdl.nn import Module, drawing
from daskdl.optim import Method
from daskdl.train.job import Job
from daskdl.train.nonfinite import WHAT_TO_DO, explain, finite
from daskdl.train.wire import add_rounded, round_in_place

Vector = NDArray[np.float32]


class TaskError(Exception):
    """An exception in a task, on its way to the driver with where it happened."""

    def __init__(self, where: str, cause: BaseException) -> None:
        try:
            pickle.loads(cloudpickle.dumps(cause))
        except Exception:  # whatever a user's exception does when it is pickled
            cause = RuntimeError(f"{type(cause).__name__}: {cause}")
        super().__init__(where, cause)

    def for_caller(self) -> tuple[TrainingError, BaseException]:
        """Return what to raise, and from what."""
        where, cause = self.args
        kind = "" if isinstance(cause, TrainingError) else f"{type(cause).__name__}: "
        return TrainingError(f"{where}: {kind}{cause}"), cause


@contextmanager
def naming(where: str, what: str = "") -> Iterator[None]:
    """Say of an exception where it happened."""
    try:
        yield
    except Exception as error:
        raise TaskError(where + at_worker() + what, error) from error


def at_worker() -> str:
    """Return " at worker <address>" in a task of a cluster, nothing elsewhere."""
    from distributed import get_worker

    try:
        return f" at worker {get_worker().address}"
    except ValueError:  # there is none
        return ""


@dataclass(frozen=True)
class Record:
    """What is known of one iteration; seconds are the slowest shard's."""

    loss: float
    samples: int
    data: float
    forward: float
    backward: float
    update: float
    finished: float  # Unix time, by the clock of the worker that updates
    reduce: float = 0.0
    broadcast: float = 0.0


@dataclass(frozen=True)
class Gradient:
    """A shard's gradient times its number of samples, or the sum of such."""

    vector: Vector = field(repr=False)
    loss: float
    samples: int
    seconds: tuple[float, float, float]

    def __sizeof__(self) -> int:
        return self.vector.nbytes


@dataclass(frozen=True)
class State:
    """All that one iteration hands to the next, and the records since the group began."""

    weights: Vector = field(repr=False)
    slots: dict[str, Vector] = field(repr=False)
    iteration: int
    records: tuple[Record, ...] = ()

    @property
    def nbytes(self) -> int:
        """Bytes of the weights and of the optimizer's state."""
        return self.weights.nbytes + sum(slot.nbytes for slot in self.slots.values())

    def __sizeof__(self) -> int:
        return self.nbytes


def load(recipe: Recipe, shard: int) -> Partition:
    """Load a shard."""
    with naming(f"shard {shard}", ": its samples cannot be loaded"):
        return recipe.load()


def gradient(
    job: Job,
    weights: Vector,
    partition: Partition,
    at: tuple[int, int, int],
    shard: int,
    start: int,
    count: int,
) -> Gradient:
    """Return a shard's part of the gradient of one iteration.

    Parameters
    ----------
    job : Job
    weights : float32 (n,)
    partition : Partition
    at : (iteration of the run, epoch, iteration in it)
    shard : int
    start, count : int
        Which positions of the epoch's order of this shard.
    """
    step, epoch, iteration = at
    where = f"iteration {step} (epoch {epoch}), shard {shard}"
    with thread_budget(job.threads), naming(where):
        tools, clock = job.tools(), [time.perf_counter()]
        chosen = positions(job.seed, epoch, shard, len(partition), start, count)
        draw = (job.seed, "map", epoch, iteration, shard)
        batch = take(partition, chosen, tools.functions, draw)
        clock.append(time.perf_counter())
        model = tools.model.train()
        if weights is not model.vector:
            model.load_vector(weights)
            if job.rounded:
                round_in_place(model.flat, job.rounded)
        model.zero_grad()
        buffers, seed = model.flat_buffers, generator(job.seed, "layers", epoch, iteration, shard)
        before = buffers.copy()
        draws = int(seed.integers(2**63))
        with drawing(draws):
            loss = tools.compare(model(batch["x"]), batch)
        clock.append(time.perf_counter())
        loss.backward()
        if not (np.isfinite(loss.data).all() and finite(model.flat_grad)):
            buffers[:] = before
            raise TrainingError(explain(model, batch, draws, float(loss)))
        vector = empty(model.vector.size, np.float32)
        parameters = model.flat_grad.size
        np.multiply(model.flat_grad, np.float32(count), out=vector[:parameters])
        np.multiply(buffers, np.float32(count), out=vector[parameters:])
        buffers[:] = before  # another shard may begin with the same ones
        clock.append(time.perf_counter())
        data, forward, backward = np.diff(clock).tolist()
        return Gradient(vector, float(loss) * count, count, (data, forward, backward))


def add(a: Gradient, b: Gradient, rounded: int = 0) -> Gradient:
    """Return the sum of two; neither is changed. So many numbers are rounded to bfloat16 before."""
    slowest = np.maximum(a.seconds, b.seconds).tolist()
    vector = add_rounded(a.vector.copy(), b.vector, rounded) if rounded else a.vector + b.vector
    return Gradient(vector, a.loss + b.loss, a.samples + b.samples, tuple(slowest))


def beginning(model: Module, optimizer: Method) -> State:
    """Return the state before the first iteration.

    The optimizer's state, too, has a place for each number of the model; those of buffers, which it
    does not change, stay zero.
    """
    buffers = model.flat_buffers.size
    slots = optimizer.init(model.flat.size)
    padded = {n: np.pad(s, (0, buffers)) if s.ndim and buffers else s for n, s in slots.items()}
    return State(model.vector.copy(), padded, 0)


def update(
    job: Job,
    state: State,
    *parts: Gradient,
    method: Method | None = None,
    parameters: int | None = None,
    summed: bool = False,
) -> State:
    """Return the next state: parameters by the optimizer, buffers by the mean over all samples.

    Parameters
    ----------
    job : Job
    state : State
        Of the whole vector, or of some slices of it.
    *parts : Gradient
        Which are added up.
    method : Method, optional
        Of these slices; the job's without.
    parameters : int, optional
        How many of the state's numbers are parameters, which come first; the model's without.
    summed : bool
        Whether the one part is what a member of a gang has made of all.

    Raises
    ------
    TrainingError
        When the loss is not finite.
    """
    began, total = time.perf_counter(), parts[0]
    if job.rounded and len(parts) == 1 and not summed:
        total = replace(total, vector=total.vector.copy())
        round_in_place(total.vector, job.rounded)
    for part in parts[1:]:
        total = add(total, part, job.rounded)
    loss = total.loss / total.samples
    if not np.isfinite(loss):
        raise TrainingError(
            f"iteration {state.iteration}: expected a finite loss, found {loss}; {WHAT_TO_DO}"
        )
    with thread_budget(job.threads), naming(f"iteration {state.iteration}, update"):
        mean = np.divide(
            total.vector, np.float32(total.samples), out=empty(total.vector.size, np.float32)
        )
        tools = job.tools()
        if parameters is None:
            parameters = tools.model.flat.size
        weights, slots = _step(method or tools.optimizer, state, mean, parameters)
    took = time.perf_counter() - began
    record = Record(loss, total.samples, *total.seconds, took, time.time())
    return State(weights, slots, state.iteration + 1, (*state.records, record))


def _step(
    optimizer: Method, state: State, mean: Vector, parameters: int
) -> tuple[Vector, dict[str, Vector]]:
    if parameters == mean.size:
        return optimizer.update(state.weights, mean, state.slots, state.iteration)
    own = {n: s[:parameters] if s.ndim else s for n, s in state.slots.items()}
    weights, slots = optimizer.update(
        state.weights[:parameters], mean[:parameters], own, state.iteration
    )
    return np.concatenate([weights, mean[parameters:]]), {
        n: np.concatenate([s, state.slots[n][parameters:]]) if s.ndim else s
        for n, s in slots.items()
    }


# An iteration waits for the new weights only, but the optimizer's state must not travel with them.
# So two tasks, weights and state, have the same inputs and run one after the other on one worker:
# the second finds here what the first has computed. Elsewhere it computes the same bits again.
_last: tuple[tuple[str, int, int], State] | None = None
_last_lock = threading.Lock()


def next_state(job: Job, attempt: int, state: State, *parts: Gradient) -> State:
    """Return the next state, as a task that shares its work with :func:`next_weights`."""
    global _last
    key = (job.id, attempt, state.iteration)
    with _last_lock:
        if _last is None or _last[0] != key:
            _last = None  # before the new one is made: both may be large
            _last = key, update(job, state, *parts)
        return _last[1]


def next_weights(job: Job, attempt: int, state: State, *parts: Gradient) -> Vector:
    """Return the next weights."""
    return next_state(job, attempt, state, *parts).weights


def weights_of(state: State) -> Vector:
    """Return the weights."""
    return state.weights
