"""The steps of an iteration as pure functions: tasks in a graph, or calls in one process."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from operator import sub
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.cluster.failures import naming
from daskdl.collective.codec import round_in_place
from daskdl.data.batches import generator
from daskdl.data.nested import nested
from daskdl.data.partition import Batch, Indices, Partition
from daskdl.errors import SettingsError, TrainingError
from daskdl.kernels.runtime.memory import empty
from daskdl.kernels.runtime.precision import computing_in
from daskdl.kernels.runtime.threads import thread_budget
from daskdl.kernels.vectors.arithmetic import copied, copy_to, times
from daskdl.nn import Module, drawing
from daskdl.nn.core.arguments import as_inputs, call
from daskdl.optim import Method
from daskdl.rows import Rows
from daskdl.tensor import Tensor
from daskdl.train.engines.ahead import drawn
from daskdl.train.engines.gradient import Clocks, Gradient, total_of
from daskdl.train.engines.job import Job
from daskdl.train.engines.nonfinite import WHAT_TO_DO, explain, finite
from daskdl.train.engines.tables import Tables

Vector = NDArray[np.float32]

#: Job, weights, partition, place in time, shard, start and count, see :func:`gradient`.
Put = tuple[Job, Vector, Partition, tuple[int, int, int], int, int, int]
#: From loss, model and count to whether all gradients are finite.
Back = Callable[[Tensor, Module, int], bool]

#: Phases of an iteration, in seconds. Data, forward and backward are the times of the mean worker,
#: which computes its shards in turn (with the graph engine, of the mean shard), and idle is how
#: much longer the slowest shard takes in all three than the mean one. Reduce and broadcast are the
#: gang engine's, of the member that waited least for others in them; what the other engines spend
#: on them, and whatever else is left, is wait.
PHASES = ("data", "forward", "backward", "idle", "reduce", "update", "broadcast", "wait")


@dataclass(frozen=True)
class Record:
    """Loss, counts and seconds of one iteration; see :data:`PHASES`."""

    loss: float
    samples: int
    data: float
    forward: float
    backward: float
    update: float
    finished: float  # Unix time, by the clock of the worker that updates
    reduce: float = 0.0
    broadcast: float = 0.0
    idle: float = 0.0
    metrics: tuple[float, ...] = ()  # of the training batch, if they are asked for


@dataclass(frozen=True)
class State:
    """The data that one iteration passes to the next, and the records since the group began.

    Weights and every vector of the optimizer's state have the order of
    :meth:`daskdl.nn.Module.snapshot`: parameters, buffers, tables.
    """

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


def gradient(
    job: Job,
    weights: Vector,
    partition: Partition,
    at: tuple[int, int, int],
    shard: int,
    start: int,
    count: int,
    keep: bool = True,
    draw: Callable[[], tuple[Indices, Batch]] | None = None,
    back: Back | None = None,
    predicted: Mapping[int, tuple[Any, ...]] | None = None,
) -> Gradient:
    """Return a shard's part of the gradient of one iteration.

    ``at`` is (iteration of the run, epoch, iteration in it). ``start`` and ``count`` are the
    positions in this shard's order of the epoch. With ``keep`` the vector is a copy; otherwise it
    is the model's own, which the thread's next gradient overwrites. ``draw`` returns positions and
    samples, which may have been drawn before. ``back`` computes the loss's gradients, times the
    count, in the model's own vector, which is then returned; see :data:`Back`. ``predicted`` has
    the predictions of all shards (:mod:`~daskdl.train.engines.whole_batch`), if the loss needs
    them.
    """
    step, epoch, _ = at
    where = f"iteration {step} (epoch {epoch}), shard {shard}"
    with thread_budget(job.threads), computing_in(job.precision), naming(where):
        tools, clock = job.tools(), [time.perf_counter()]
        chosen, batch = draw() if draw else drawn(job, partition, shard, (at, start, count))
        clock.append(time.perf_counter())
        model = with_weights(job, weights)
        joined = model.joined
        joined.zero_grad()
        buffers = joined.buffers
        before = buffers.copy()
        seed = partial(layers_seed, job, at, shard)
        with drawing(seed):
            prediction = call(model, as_inputs(nested(batch, "x")))
            others: Any = None
            if predicted is not None:  # the shards before this one, and those behind it
                order = sorted(predicted)
                before_it = [predicted[s] for s in order if s < shard]
                others = before_it, [predicted[s] for s in order if s > shard]
            loss = tools.compare(prediction, batch, chosen, others)
        measured = (tools.measure(prediction, batch),) if job.measures else ()
        del prediction  # the tape lets go of what it has gone back through
        clock.append(time.perf_counter())
        joined = model.joined
        parameters, done = joined.grad.size, None
        if back is not None:  # it hands on finished gradients, buffers with the last layers
            np.multiply(buffers, np.float32(count), out=joined.whole_grad[parameters:])
            done = back(loss, model, count)
        else:
            loss.backward()
        tables = joined.tables.values()
        rows = [Rows.none_of(p.shape) if p.grad is None else p.grad for p in tables]
        vector = empty(joined.whole.size, np.float32) if keep else joined.whole_grad
        sound = times(joined.grad, count, vector[:parameters]) if done is None else done
        sound &= all(finite(r.values.reshape(-1)) for r in rows)
        value = float(loss)
        if not (sound and math.isfinite(value)):
            buffers[:] = before
            raise TrainingError(explain(model, batch, seed(), value))
        if done is None:
            np.multiply(buffers, np.float32(count), out=vector[parameters:])
        buffers[:] = before  # another shard may begin with the same ones
        clock.append(time.perf_counter())
        summed = tuple(r.times(count) for r in rows)
        seconds = Clocks.of(*map(sub, clock[1:], clock))
        return Gradient(vector, value * count, count, seconds, summed, measured)


def with_weights(job: Job, weights: Vector) -> Module:
    """Return this thread's model, in training, with these weights."""
    model = job.tools().model
    if not model.training:
        model.train()
    if weights is not model.joined.whole:
        model.restore(weights, copy=False)
        if job.rounded:
            round_in_place(model.flat, job.rounded)
    return model


def layers_seed(job: Job, at: tuple[int, int, int], shard: int) -> int:
    """Return the seed of the layers' random numbers for a shard in one iteration."""
    return int(generator(job.seed, "layers", *at[1:], shard).integers(2**63))


def beginning(model: Module, optimizer: Method, shared: bool = False) -> State:
    """Return the state before the first iteration.

    ``shared``: the weights are the model's own memory if they are contiguous, not a copy.

    The optimizer's state has a place for each number of the model, too; the places of buffers,
    which it does not change, stay zero.
    """
    tables, none = Tables.of(model.joined), np.zeros(model.flat_buffers.size, np.float32)
    slots = optimizer.init(model.flat.size)
    for name, slot in slots.items():
        if not isinstance(slot, np.ndarray) or slot.shape not in ((model.flat.size,), ()):
            raise SettingsError(
                f"{type(optimizer).__name__}.init: expected arrays of shape ({model.flat.size},), "
                f"or () for what belongs to no weight, found {_kind(slot)} as {name!r}; a state of "
                "another shape can be made of several such arrays"
            )
    rows = optimizer.init_rows(tables.size - tables.start) if tables else {}
    for name, slot in slots.items():
        if slot.ndim and (none.size or tables):
            slots[name] = np.concatenate([slot, none, rows.get(name, none[:0])])
    return State(model.vector if shared and not tables else model.snapshot(), slots, 0)


def update(
    job: Job,
    state: State,
    *parts: Gradient,
    method: Method | None = None,
    parameters: int | None = None,
    summed: bool = False,
    overwrite: bool = False,
    workers: int | None = None,
) -> State:
    """Return the next state: parameters by the optimizer, buffers by the mean over all samples.

    Tables are stepped at the rows of the gradient. The state is of the whole vector, or of some
    slices of it: then ``method`` is the slices' method, and the first ``parameters`` numbers are
    parameters. The parts are added up, unless the only one is ``summed`` by a member of a gang
    already. With ``overwrite`` the state's arrays may be changed and returned; nothing else uses
    them. ``workers`` says which worker computed each shard's gradient, for the seconds in the
    record. Raises TrainingError when a loss is not finite.
    """
    began, total = time.perf_counter(), total_of(parts, job.rounded, job.threads)
    if job.rounded and len(parts) == 1 and not summed:
        total = replace(total, vector=copied(total.vector))
        round_in_place(total.vector, job.rounded)
    loss = total.loss / total.samples
    if not math.isfinite(loss):
        raise TrainingError(
            f"iteration {state.iteration}: expected a finite loss, found {loss}; {WHAT_TO_DO}"
        )
    with thread_budget(job.threads), naming(f"iteration {state.iteration}, update"):
        tools = job.tools()
        joined = tools.model.joined
        if parameters is None:
            parameters = joined.grad.size
        stepper, tables = method or tools.optimizer, Tables.of(joined)
        weights, slots = _step(stepper, tables, state, total, parameters, overwrite)
    took = time.perf_counter() - began
    metrics = tools.values(total.measured)
    record = Record(
        loss,
        total.samples,
        update=took,
        finished=time.time(),
        metrics=metrics,
        **total.seconds.means(workers),
    )
    return State(weights, slots, state.iteration + 1, (*state.records, record))


def _step(
    optimizer: Method,
    tables: Tables,
    state: State,
    total: Gradient,
    parameters: int,
    overwrite: bool,
) -> tuple[Vector, dict[str, Vector]]:
    """Return new weights and state: parameters, then the buffers' means, then tables."""
    slots_of = {n: s[:parameters] if s.ndim else s for n, s in state.slots.items()}
    put = state.weights[:parameters], total.vector[:parameters], slots_of, state.iteration
    scale = 1 / total.samples  # the optimizer makes a mean of the sum, in the one pass it needs
    rows = total.rows
    if rows and optimizer.joint:
        optimizer = optimizer.knowing(optimizer.terms(*put, scale), optimizer.row_terms(rows))
    first, changed = optimizer.update(*put, scale=scale, overwrite=overwrite)
    first = _checked(optimizer, first, changed, put[0], slots_of)
    weights = _beginning_with(first, put[0], state.weights, overwrite)
    slots = dict(state.slots)
    for name, slot in changed.items():
        slots[name] = (
            _beginning_with(slot, slots_of[name], slots[name], overwrite) if slot.ndim else slot
        )
    buffers = total.vector[parameters:]
    if buffers.size:
        np.divide(buffers, total.samples, out=weights[parameters : total.vector.size])
    if rows:
        behind = {n: s[tables.start :] if s.ndim else s for n, s in slots.items()}
        tables.step(optimizer, tables.stretches(weights, behind), rows, state.iteration, scale)
    return weights, slots


def _checked(
    optimizer: Method, new: Any, changed: Any, old: Vector, state: dict[str, Vector]
) -> Vector:
    """Return a method's new weights in the dtype of its old ones.

    Raises TrainingError unless weights and state have the old ones' names and shapes.
    """
    name = type(optimizer).__name__
    if not isinstance(new, np.ndarray) or new.shape != old.shape:
        raise TrainingError(
            f"{name}.update: expected new weights of shape {old.shape}, found {_kind(new)}; "
            "return a number for each weight"
        )
    unknown = changed.keys() - state.keys()
    if unknown:
        raise TrainingError(
            f"{name}.update: expected a state of {sorted(state)}, found {sorted(unknown)} too; let "
            "init return all that there will be"
        )
    for key, value in changed.items():
        if not isinstance(value, (np.ndarray, np.generic)) or value.shape != state[key].shape:
            raise TrainingError(
                f"{name}.update: expected {key!r} as an array of shape {state[key].shape}, found "
                f"{_kind(value)}; return what init returned"
            )
    return new if new.dtype == old.dtype else new.astype(old.dtype)


def _kind(value: Any) -> str:
    """Describe a value that is not an array of the right shape."""
    if isinstance(value, np.ndarray):
        return f"shape {value.shape}"
    return type(value).__name__


def _beginning_with(first: Vector, old: Vector, whole: Vector, overwrite: bool) -> Vector:
    """Return the vector ``whole`` with its beginning replaced by ``first``.

    It is ``whole`` itself, by which the next gradient recognises it, if ``first`` was written in
    place over ``old``.
    """
    # The same numbers may come under a new name; to ask for it takes longer.
    if overwrite and (first is old or first.ctypes.data == whole.ctypes.data):
        return whole
    if first.size == whole.size:
        return first
    new: Vector = empty(whole.size, whole.dtype)
    copy_to(new[: first.size], first)
    new[first.size :] = whole[first.size :]
    return new


# An iteration waits for the new weights only, but the optimizer's state must not travel with them.
# So two tasks, weights and state, have the same inputs and run one after the other on one worker:
# the second finds here what the first has computed. Elsewhere it computes the same bits again.
_last: tuple[tuple[str, int, int], State] | None = None
_last_lock = threading.Lock()


def next_state(job: Job, attempt: int, state: State, *parts: Gradient) -> State:
    """Return the next state; the task shares its work with :func:`next_weights`."""
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
