"""Job: what all tasks of a run need, sent to a worker once, unpacked in each thread; validation."""

from __future__ import annotations

import io
import threading
import uuid
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any

import cloudpickle
import numpy as np
from numpy.typing import NDArray

from daskdl.cluster.failures import naming
from daskdl.data.partition import Partition
from daskdl.errors import SettingsError
from daskdl.kernels.runtime.precision import computing_in
from daskdl.kernels.runtime.threads import thread_budget
from daskdl.nn import Buffer, Module, Parameter
from daskdl.optim import Method
from daskdl.predict.arguments import check_sendable
from daskdl.predict.evaluation import Evaluation, evaluate_partition
from daskdl.predict.measures import Measures
from daskdl.tensor import no_grad

_unpacked = threading.local()


@dataclass(frozen=True, kw_only=True)
class Tools(Measures):
    """Model, loss, optimizer, functions and metrics of a job; the model is this thread's own."""

    model: Module
    optimizer: Method
    functions: tuple[Callable[..., Any], ...] = ()
    validation_functions: tuple[Callable[..., Any], ...] = ()


@dataclass(frozen=True)
class Job:
    """A run as tasks see it.

    ``payload`` is the pickled :class:`Tools`; classes of a user's ``__main__`` travel by value. The
    model's parameters and buffers are zeros in it, since every task gets its iteration's.
    ``threads`` is the number of a task's arithmetic threads. The first ``rounded`` numbers of the
    vector are rounded to bfloat16 before they are added (:mod:`daskdl.collective.codec`).
    ``measures``: whether metrics are computed of training batches too. ``whole_batch``: whether the
    loss compares a sample with the samples of all shards.
    """

    id: str
    payload: bytes = field(repr=False)
    seed: int
    threads: int
    rounded: int = 0
    measures: bool = False
    precision: str = "float32"
    whole_batch: bool = False

    def __sizeof__(self) -> int:
        return len(self.payload)

    def tools(self) -> Tools:
        """Return this thread's own copy of the tools."""
        unpacked: OrderedDict[str, Tools] = _unpacked.__dict__.setdefault("jobs", OrderedDict())
        if self.id not in unpacked:
            unpacked[self.id] = cloudpickle.loads(self.payload)
            while len(unpacked) > 2:  # two runs may take turns on a worker
                unpacked.popitem(last=False)
        unpacked.move_to_end(self.id)
        return unpacked[self.id]

    def forget(self) -> None:
        """Release this thread's copy."""
        _unpacked.__dict__.get("jobs", {}).pop(self.id, None)


def pack(tools: Tools, seed: int, threads: int) -> Job:
    """Return a new job; raise SettingsError when a part of it cannot be sent to workers."""
    file = io.BytesIO()
    try:
        _WithoutNumbers(file, tools.model).dump(tools)
    except Exception as error:
        parts = {f.name.replace("_", " "): getattr(tools, f.name) for f in fields(tools)}
        check_sendable("Trainer", parts)
        raise SettingsError(
            f"Trainer: expected a run that can be pickled and sent to workers, found one that "
            f"cannot ({error})"
        ) from error
    whole = bool(getattr(tools.loss, "whole_batch", False))
    return Job(uuid.uuid4().hex[:12], file.getvalue(), seed, threads, whole_batch=whole)


class _WithoutNumbers(cloudpickle.Pickler):
    """Pickles only the shapes of a model's parameters and buffers."""

    def __init__(self, file: io.BytesIO, model: Module) -> None:
        super().__init__(file)
        self._tensor_ids = {id(tensor) for _, tensor in model.held()}

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, Parameter) and id(value) in self._tensor_ids:
            return _parameter, (value.shape, value.requires_grad, value.sparse)
        if isinstance(value, Buffer) and id(value) in self._tensor_ids:
            return _buffer, (value.shape,)
        return super().reducer_override(value)


def _parameter(shape: tuple[int, ...], requires_grad: bool, sparse: bool) -> Parameter:
    made = Parameter(np.zeros((0,) * len(shape)), requires_grad, sparse)
    made.data = np.zeros(shape, np.float32)  # not copied, so that it takes no memory yet
    return made


def _buffer(shape: tuple[int, ...]) -> Buffer:
    return Buffer(np.zeros(shape))


def evaluate(
    job: Job, weights: NDArray[np.float32], partition: Partition, shard: int, batch_size: int
) -> Evaluation:
    """Return a shard's part of a validation of the job's weights."""
    budget, where = thread_budget(job.threads), naming(f"validation, shard {shard}")
    with budget, computing_in(job.precision), where, no_grad():
        tools = job.tools()
        model = tools.model.eval()
        model.restore(weights, copy=False)
        functions, seeds = tools.validation_functions, (job.seed, shard)
        return evaluate_partition(model, tools, functions, partition, batch_size, seeds)
