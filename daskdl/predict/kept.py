"""Kept predictors: with their models while these do not change, and on the workers.

A predictor's preparation (weights in the order of the kernels, programs, copies for threads) costs
more than a pass of a few samples. Repeated calls of a model should not pay it each time. So before
each use the model is compared with its earlier state: its modules, their attributes, and a digest
of all numbers. A cluster gets the predictor once, and graphs have its key.
"""

from __future__ import annotations

import sys
import uuid
import weakref
from dataclasses import dataclass, field
from operator import is_
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakValueDictionary

import cloudpickle
import numpy as np

from daskdl.cluster.client import Cluster
from daskdl.cluster.current import current_client
from daskdl.compat.dask import Task, TaskRef
from daskdl.kernels.vectors.reduce import digest
from daskdl.nn import Module
from daskdl.predict.predictor import Predictor, copy_of

if TYPE_CHECKING:
    from distributed import Client, Future


#: Most predictors of one model, such as for `predict` and for `embed`.
MOST = 4
#: Most bytes of an array that is compared itself; for a larger one its digest is.
SMALL = 1024
#: Most bytes of a predictor that the scheduler keeps, too. Dask warns of graphs of over 10 MB.
REPEATED = 8_000_000

_kept: weakref.WeakKeyDictionary[Module, _Kept] = weakref.WeakKeyDictionary()
_lock = Lock()


class _Look(NamedTuple):
    """A module's attributes at some time, with the contents of its lists."""

    module: weakref.ref[Module]
    attributes: list[dict[str, Any]]
    lists: list[tuple[list[Any], list[Any]]]

    def lasts(self) -> bool:
        """Return whether the module still has these attributes."""
        module = self.module()
        if module is None:
            return False
        module.take_over()
        now = [*module.attributes()]
        return (
            len(now) == len(self.attributes)
            and all(map(_same, now, self.attributes))
            and all(len(a) == len(b) and all(map(is_, a, b)) for a, b in self.lists)
        )


@dataclass(frozen=True, eq=False)
class _Kept:
    """The state of a model at some time, and its predictors since then.

    They work on a copy with the model's own weights, since a reference would keep the model in
    memory.
    """

    looks: list[_Look]
    numbers: list[Any]
    copy: Module
    predictors: dict[tuple[Any, ...], Predictor] = field(default_factory=dict)


def _same(now: dict[str, Any], then: dict[str, Any]) -> bool:
    if len(now) == len(then) and all(map(is_, now.values(), then.values())):
        return all(map(is_, now, then))
    rest = [{n: v for n, v in part.items() if n != "training"} for part in (now, then)]
    return rest[0].keys() == rest[1].keys() and all(map(is_, rest[0].values(), rest[1].values()))


def predictor_of(
    model: Module,
    layer: str | None,
    classes: bool,
    batch_size: int | None,
    threads: int | None,
    precision: str,
) -> Predictor:
    """Return a predictor of the current model: the kept one if nothing has changed.

    For the arguments see `Predictor`.

    Examples
    --------
    >>> model = nn.Linear(3, 2)
    >>> settings = (None, False, None, 1, "float32")
    >>> first = predictor_of(model, *settings)
    >>> first is predictor_of(model, *settings)
    True
    >>> model.weight.data[0, 0] += 1
    >>> first is predictor_of(model, *settings)
    False
    """
    settings = (layer, classes, batch_size, threads, precision)
    with _lock:
        entry = _kept.get(model)
    # Outside of the lock: threads that share a model compare and copy it in parallel.
    lasts = entry is not None and all(look.lasts() for look in entry.looks)
    looks = entry.looks if entry is not None and lasts else _looked(model)
    numbers = _numbers(model, looks)
    if entry is None or not lasts or numbers != entry.numbers:
        made = _Kept(looks, numbers, copy_of(model))
        with _lock:
            faster = _kept.get(model)
            if faster is None or faster is entry or numbers != faster.numbers:
                faster = _kept[model] = made
            entry = faster
    with _lock:
        predictor = entry.predictors.pop(settings, None)
        if predictor is None:
            predictor = Predictor(
                entry.copy, layer, classes, batch_size, threads, precision=precision
            )
        entry.predictors[settings] = predictor
        if len(entry.predictors) > MOST:
            entry.predictors.pop(next(iter(entry.predictors)))
    return predictor


def _looked(model: Module) -> list[_Look]:
    looks = []
    for _, module in model.modules():
        module.take_over()
        lists = [(v, [*v]) for v in vars(module).values() if isinstance(v, list)]
        looks.append(_Look(weakref.ref(module), [dict(a) for a in module.attributes()], lists))
    return looks


def _numbers(model: Module, looks: list[_Look]) -> list[Any]:
    """Return digests of weights, buffers, tables and constants; the bytes of small ones."""
    joined = model.joined
    arrays = [joined.whole, *(table.data for table in joined.tables.values())]
    modules: list[Any] = [look.module() for look in looks]
    of_graphs = [module for module in modules if hasattr(type(module), "constants")]
    arrays += [array for graph in of_graphs for array in graph.constants.values()]
    # A network of ONNX has hundreds of constants of some bytes, which are faster to copy.
    return [
        array.tobytes() if array.nbytes <= SMALL else digest(array)
        for array in arrays
        if isinstance(array, np.ndarray)
    ]


#: Futures of predictors that were sent, by client and token, as long as anything refers to them.
_sent: WeakValueDictionary[tuple[str, str], Future] = WeakValueDictionary()


def for_tasks(predictor: Predictor) -> tuple[TaskRef, list[Any]]:
    """Return a task's reference to a predictor, and the collections with it, which graphs need."""
    reference = held_by_workers(predictor)
    if isinstance(reference, TaskRef):  # a Future is one
        return reference, []
    return TaskRef(reference.key), [reference]


def held_by_workers(predictor: Predictor, client: Client | None = None) -> Any:
    """Return a reference to a predictor for graphs: a Future, or a Delayed without a client.

    With a client it is a Future: every worker has the weights, and the graph has their key. Dask
    removes unused copies after a while; workers that need them again, or join later, fetch them
    from each other. If the last worker with them dies, another one gets them from the scheduler,
    up to ``REPEATED`` bytes. Predictions of one model share it while one of them exists. Without a
    client it is a Delayed: the graph of a prediction has the weights once.
    """
    client = current_client() if client is None else client
    if client is None:
        from dask import delayed

        return delayed(predictor, name=f"model-{predictor.token}", traverse=False)
    reference = _sent.get((client.id, predictor.token))
    if reference is None or reference.status != "finished":
        # Dask may be deleting an earlier one: with the same name it would delete this one, too.
        name = f"model-{predictor.token}-{uuid.uuid4().hex[:12]}"
        reference = Cluster(client).broadcast(name, predictor, "prediction")
        if sys.getsizeof(predictor) <= REPEATED:
            later = _make_repeatable, weakref.ref(reference), predictor
            client.loop.add_callback(client.loop.call_later, 1, *later)
        _sent[client.id, predictor.token] = reference
    return reference


def _make_repeatable(reference: weakref.ref[Future], predictor: Predictor) -> None:
    """Give the scheduler a task for weights that workers have; Dask runs it if these are lost.

    This comes a second later, so that a first prediction does not wait; copies last about as long.
    """
    future = reference()
    if future is not None and future.status == "finished":
        # The scheduler may lack a model's class, so it gets bytes; as numpy's they are hashed fast.
        payload = np.frombuffer(cloudpickle.dumps(predictor), np.uint8)
        task = Task(future.key, cloudpickle.loads, payload)
        future.client.get({future.key: task}, future.key, sync=False)
