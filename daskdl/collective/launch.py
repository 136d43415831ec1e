"""run: a function on all workers of a cluster at once, each call with a communicator."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from distributed import get_worker

from daskdl.cluster.attempts import until_done
from daskdl.cluster.client import Cluster
from daskdl.cluster.failures import TaskError, at_worker
from daskdl.cluster.settings import seconds
from daskdl.cluster.tasks import Place, assign
from daskdl.collective.communicator import Communicator
from daskdl.collective.group import Group
from daskdl.collective.rank_tasks import TURN, RankTasks, take_turn
from daskdl.collective.rendezvous import Rendezvous
from daskdl.collective.transport.comm import BrokenGangError
from daskdl.compat.dask import Task, TaskRef
from daskdl.errors import SettingsError

if TYPE_CHECKING:
    from distributed import Client, Future


def run(
    client: Client,
    function: Callable[..., Any],
    *args: Any,
    shards: int | Sequence[Any] | None = None,
    timeout: float | None = None,
) -> list[Any]:
    """Run a function on all workers at once, or on none; return its results by rank.

    The function is called as ``function(comm, *args)``, or as ``function(comm, parts, *args)`` if
    ``shards`` are data. Its communicator sums, gathers and broadcasts arrays between the calls
    (:class:`~daskdl.collective.communicator.Communicator`). Sums follow a tree over the shards, so
    that they have the same bits on any number of workers. When a worker is lost, the calls on all
    others end, and the function runs again on the remaining workers.

    Parameters
    ----------
    client : distributed.Client
    function : callable
        It must pickle. It may run more than once, so it has no effects that must not repeat.
    *args : object
        Arguments of every call.
    shards : int, or sequence of Delayed or Future
        Number of shards, by default one for each worker; or the data of each shard, such as
        ``list(array.to_delayed().ravel())``. Data on a worker are used there. Each call gets
        ``parts``: the data of its own shards, by shard.
    timeout : float, optional
        Seconds that one attempt may take, by default ``daskdl.stall-timeout``.

    Returns
    -------
    list
        One result for each rank. A worker with a shard is a rank.

    Raises
    ------
    TrainingError
        For an exception in a call; it names rank and worker.
    ClusterError
        When there are no workers, the time is over, or workers were lost in each attempt.

    Examples
    --------
    >>> def mean(comm, parts):  # doctest: +SKIP
    ...     total = comm.all_reduce({s: [x.sum(), x.size] for s, x in parts.items()})
    ...     return total[0] / total[1]
    >>> run(client, mean, shards=list(array.to_delayed().ravel()))  # doctest: +SKIP
    """
    if isinstance(shards, int) and shards < 1:
        raise SettingsError(
            f"run, shards: expected at least 1, found {shards}; leave it out for one a worker"
        )
    if not (shards is None or isinstance(shards, int)) and not len(shards):
        raise SettingsError("run, shards: expected the data of at least one shard, found none")
    call = _Call(client, function, args, shards, timeout)
    try:
        return until_done(call.cluster, call.purpose, call.attempt, call.after_loss)
    finally:
        call.close()


class _Call:
    """One call of :func:`run`, and its attempts."""

    def __init__(
        self,
        client: Client,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        shards: int | Sequence[Any] | None,
        timeout: float | None,
    ) -> None:
        self.cluster, self._client = Cluster(client), client
        self._function, self._args, self._timeout = function, args, timeout
        self.purpose = f"collective {getattr(function, '__name__', function)!s}"
        self._id, self._attempt = uuid.uuid4().hex[:12], 0
        self._count = shards if isinstance(shards, int) else None
        self._data = None if isinstance(shards, int) else shards
        self._ready: list[Future] = []
        self.cluster.install(Rendezvous(), self.purpose)
        self._lock = self.cluster.lock(TURN)

    def attempt(self) -> list[Any]:
        """Run the function once on the current workers."""
        self._attempt += 1
        workers = self.cluster.workers(self.purpose)
        if self._data is not None and not self._ready:
            self._ready = self._client.compute(list(self._data), allow_other_workers=True)
            self.cluster.wait(self._ready, self.purpose)
        if self._ready:
            holders = self.cluster.holders(self._ready, workers)
        else:
            holders = [None] * (self._count or len(workers))
        placed = assign(holders, workers)
        addresses = tuple(dict.fromkeys(placed))
        owners = tuple(addresses.index(a) for a in placed)
        group = Group(f"run-{self._id}", addresses, owners, seconds("peer-timeout"))
        graph: dict[Any, Any] = {}
        for rank in range(len(addresses)):
            key = (f"run-{self._id}", self._attempt, rank)
            parts = [TaskRef(self._ready[s].key) for s in group.shards(rank)] if self._ready else []
            put = self._id, self._attempt, rank, self._function, self._args, bool(self._ready)
            graph[key] = Task(key, run_rank, group, *put, *parts)
        take_turn(self.cluster, self._lock, self.purpose)
        tasks = None
        try:
            futures = self.cluster.submit(graph, list(graph), Place(addresses))
            tasks = RankTasks(self.cluster, self._id, self._attempt, group, futures)
            limit = seconds("stall-timeout") if self._timeout is None else self._timeout
            tasks.wait(self.purpose, limit)
            return tasks.results()
        except BaseException as error:
            if tasks is not None:
                tasks.end(f"the driver has ended it ({type(error).__name__})")
            raise
        finally:
            if tasks is not None:
                for future in tasks.close().values():
                    future.cancel()
            self._lock.release()

    def after_loss(self) -> None:
        """Compute data again that may be lost."""
        self._ready = []

    def close(self) -> None:
        """Release what the workers keep."""
        self._ready = []
        self.cluster.drop(self._lock)
        self.cluster.tell({"op": "daskdl_gang_forget", "run": self._id})


def run_rank(
    group: Group,
    run: str,
    attempt: int,
    rank: int,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    with_parts: bool,
    *parts: Any,
) -> Any:
    """Call the function on one rank: the task of a worker."""
    worker = get_worker()
    if worker.address != group.addresses[rank]:
        raise BrokenGangError(f"{group.name(rank)} is lost")
    rendezvous = worker.plugins[Rendezvous.name]
    comm = Communicator.connect(rendezvous, group, run, attempt, rank)
    rendezvous.at[run] = f"its own work, shards {comm.shards}"
    by_shard = (dict(zip(comm.shards, parts, strict=True)),) if with_parts else ()
    try:
        result = function(comm, *by_shard, *args)
    except BaseException as error:
        comm.close(f"{type(error).__name__}: {error}")
        if isinstance(error, BrokenGangError) or not isinstance(error, Exception):
            raise
        raise TaskError(f"rank {rank}{at_worker()}", error) from error
    finally:
        rendezvous.at.pop(run, None)
    comm.close()
    return result
