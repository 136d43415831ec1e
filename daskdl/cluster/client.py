"""Cluster: a Dask client with a deadline for every request."""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from concurrent.futures import Future as ConcurrentFuture
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from daskdl.cluster.failures import daskdl_there
from daskdl.cluster.losses import IF_LOST, IF_NONE, Heartbeats, losses_of
from daskdl.cluster.settings import seconds
from daskdl.cluster.starting.address import one_line
from daskdl.cluster.tasks import Place, done, same_run
from daskdl.compat.dask import (
    HighLevelGraph,
    MaterializedLayer,
    scheduler_operation,
    stop_renewing,
    worker_operation,
)
from daskdl.errors import ClusterError

if TYPE_CHECKING:
    from dask.typing import Key
    from distributed import Client, Future, WorkerPlugin

logger = logging.getLogger(__name__)

#: Seconds between two checks for workers that send no heartbeats.
HEARD_EVERY = 1.5
#: Attempts to install a plugin if workers are lost meanwhile.
ATTEMPTS = 5
#: Exceptions of a request over a broken connection to the scheduler or a worker.
UNREACHABLE = OSError, TimeoutError, AttributeError, RuntimeError, ValueError


@contextmanager
def _leaving(purpose: str) -> Iterator[None]:
    """Turn a scheduler's KeyError about a worker that has just left into a ConnectionError."""
    try:
        with daskdl_there(purpose):
            yield
    except KeyError as error:
        raise ConnectionError(f"{error} has left the cluster") from error


class Cluster:
    """A client of a Dask cluster whose workers may come and go."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._address = str(client.scheduler.address)  # not available once the scheduler is gone
        #: Whether this process can connect to workers; behind a gateway it cannot.
        self.direct = not self._address.startswith("gateway:")
        self._heartbeats = Heartbeats()
        self._seen: set[str] = set()  # addresses of all workers so far
        # One span for all tasks from here. Otherwise Dask begins a span with every graph on an idle
        # cluster, and scheduler and workers keep some kilobytes of each forever.
        self._span = {"name": ("daskdl",), "ids": (uuid.uuid4().hex,)}

    @property
    def connected(self) -> bool:
        """Whether the client is connected to the scheduler."""
        return str(self._client.status) == "running"

    def workers(self, purpose: str, without: Container[str] = ()) -> dict[str, int]:
        """Return address and threads of the workers that take tasks; wait for the first.

        Workers in ``without`` and :meth:`silent` ones do not count. Raises ClusterError when no
        worker arrives within ``daskdl.no-workers-timeout``, or the scheduler is gone.
        """
        limit, began, warned = seconds("no-workers-timeout"), time.monotonic(), False
        asking = None
        while True:
            running = self.running(purpose)
            if silent := self._heartbeats.silent:
                silent = self.silent(purpose)
            self._seen.update(running)
            usable = {w: n for w, n in running.items() if w not in without and w not in silent}
            if usable:
                del asking
                return usable
            waited = time.monotonic() - began
            if waited > limit:
                losses = self.losses()
                raise ClusterError(
                    f"{purpose}: expected workers at {self._address}, found none for {limit:g} s"
                    f"{losses}; {IF_LOST if losses else IF_NONE}"
                )
            if not warned:
                warned = True
                logger.warning(
                    "%s: no worker at %s, waiting up to %g s for one", purpose, self._address, limit
                )
                # An adaptive cluster starts workers only for waiting tasks.
                asking = self._client.submit(int, pure=False)
            time.sleep(0.2)

    def losses(self) -> str:
        """Return a part of a sentence about workers whose processes have ended."""
        return losses_of(self._client, self._seen)

    def submit(
        self,
        graph: Mapping[Key, Any],
        keys: Sequence[Key],
        place: Place,
        behind: Mapping[Key, Any] | None = None,
    ) -> list[Future]:
        """Submit a graph to the scheduler.

        A task runs on the worker that its key names, or on any worker if that one is gone. Dask
        chooses the workers for tasks in ``behind``, which the graph depends on.
        """
        there = {"workers": place, "allow_other_workers": True, "span": self._span}
        layers = {"daskdl": MaterializedLayer(graph, annotations=there)}
        if behind:
            layers["behind"] = MaterializedLayer(behind, annotations={"span": self._span})
        needs = {name: {"behind"} & (layers.keys() - {name}) for name in layers}
        futures: list[Future] = self._client.get(
            HighLevelGraph(layers, needs), list(keys), sync=False
        )
        return futures

    def compute(
        self, graph: Mapping[Key, Any], keys: Sequence[Key], place: Place, purpose: str
    ) -> list[Any]:
        """Submit a graph to the scheduler, wait for it, and return the results of ``keys``."""
        futures = self.submit(graph, keys, place)
        try:
            self.wait(futures, purpose, place.addresses)
            return self.fetch(futures)
        finally:
            for future in futures:  # otherwise an exception's traceback keeps them and their tasks
                future.release()

    def wait(
        self, futures: Sequence[Future], purpose: str, addresses: Sequence[str] | None = None
    ) -> None:
        """Wait until all futures are done, and raise the exception of the first failed one.

        Raise a ConnectionError when a worker at one of the ``addresses``, by default any with tasks
        of the same run, has sent no heartbeat for ``daskdl.heartbeat-timeout``.
        """
        limit, began = seconds("stall-timeout"), time.monotonic()
        heard = began
        while True:
            if self.done(futures, 1.0):
                break
            if time.monotonic() - heard > HEARD_EVERY:
                self._check_heard(futures[0].key, purpose, addresses)
                heard = time.monotonic()
            # This also logs a warning while there are no workers.
            self.workers(purpose)
            if time.monotonic() - began > limit:
                raise ClusterError(
                    f"{purpose}: expected an end within daskdl.stall-timeout = {limit:g} s, found "
                    f"{self._at_work(futures[0].key, purpose)}; raise it in dask.config if it "
                    "takes so long"
                )
        for future in futures:
            if future.status == "error":
                raise future.exception(timeout=seconds("transfer-timeout"))

    def _check_heard(self, key: Key, purpose: str, addresses: Sequence[str] | None) -> None:
        """Raise a ConnectionError if a required worker is silent."""
        silent = self.silent(purpose)
        if silent and addresses is None:
            at_work = self._asked(purpose, "processing")
            addresses = [a for a, keys in at_work.items() if any(map(same_run(key), keys))]
        for address in silent.keys() & set(addresses or ()):
            raise ConnectionError(
                f"worker {address} has sent no heartbeat for {silent[address]:.0f} s"
            )

    def done(self, futures: Sequence[Future], timeout: float) -> bool:
        """Wait for up to ``timeout`` s, and return whether all are done; see :func:`tasks.done`."""
        return done(self._client, futures, timeout)

    def ended(self, futures: Sequence[Future], timeout: float) -> bool:
        """Wait for up to ``timeout`` s, and return whether all are done or cancelled."""
        try:
            return self.done(futures, timeout)
        except CancelledError:  # cancelled with a lost worker
            return True

    def ask(self, address: str, message: Mapping[str, Any]) -> ConcurrentFuture[Any]:
        """Send a message to a worker, and return the future of its answer."""

        async def asked() -> Any:
            words = {name: value for name, value in message.items() if name != "op"}
            return await worker_operation(self._client, address, message["op"])(**words)

        loop = self._client.loop.asyncio_loop
        return asyncio.run_coroutine_threadsafe(asked(), loop)

    def fetch(self, futures: Sequence[Future]) -> list[Any]:
        """Return results, directly from the workers if possible."""

        async def gather() -> Any:
            return await self._client.gather(list(futures), direct=self.direct, asynchronous=True)

        results: list[Any] = self._client.sync(gather, callback_timeout=seconds("transfer-timeout"))
        return results

    def send(self, name: str, value: Any, address: str) -> Future:
        """Send a value to a worker, if possible without the scheduler."""
        return self._scatter([({name: value}, [address])])[0]

    def broadcast(self, name: str, value: Any, purpose: str) -> Future:
        """Send a value to every worker that takes tasks; workers pass it on to each other."""
        there = list(self.workers(purpose))  # waits for the first
        chosen = there if self._heartbeats.silent else None
        return self._scatter([({name: value}, chosen)], purpose, broadcast=True)[0]

    def send_each(self, name: str, values: Sequence[Any], addresses: Sequence[str]) -> list[Future]:
        """Send one value to each worker in parallel, under ``name-<number>``."""
        pairs = enumerate(zip(values, addresses, strict=True))
        return self._scatter([({f"{name}-{i}": value}, [at]) for i, (value, at) in pairs])

    def _scatter(
        self,
        sends: Iterable[tuple[dict[str, Any], list[str] | None]],
        purpose: str = "sending to workers",
        broadcast: bool = False,
    ) -> list[Future]:
        """Send named values to workers in parallel, None for all workers."""

        async def scatter() -> list[dict[str, Future]]:
            # scatter's own timeout limits its wait for a lost worker to return.
            scattering = (
                self._client.scatter(
                    named, workers=workers, broadcast=broadcast, direct=self.direct, timeout=1,
                    asynchronous=True,
                )
                for named, workers in sends
            )  # fmt: skip
            return await asyncio.gather(*scattering)

        limit = seconds("transfer-timeout")
        with _leaving(purpose):
            scattered = self._client.sync(scatter, callback_timeout=limit)
        return [future for futures in scattered for future in futures.values()]

    def holders(
        self, futures: Sequence[Future | None], workers: Mapping[str, int]
    ) -> list[str | None]:
        """Return for each future a worker that holds its result, or None."""
        keys = [f.key for f in futures if f is not None]
        where: Mapping[Key, Sequence[str]] = {}
        if keys:
            ask = scheduler_operation(self._client, "who_has")
            where = self._client.sync(ask, keys=keys, callback_timeout=seconds("transfer-timeout"))
        result: list[str | None] = []
        for future in futures:
            holding = where.get(future.key, ()) if future is not None else ()
            result.append(next((w for w in sorted(holding) if w in workers), None))
        return result

    def check_scheduler(self, purpose: str, error: BaseException) -> None:
        """Raise a ClusterError unless the scheduler still answers."""
        try:
            self.running(purpose)
        except ClusterError as gone:
            raise gone from error

    def error(self, future: Future) -> BaseException:
        """Return the exception of a future that has failed or was lost."""
        error = future.exception(timeout=seconds("transfer-timeout"))
        return CancelledError(future.status) if error is None else error

    def alive(self, purpose: str) -> set[str]:
        """Return the workers that the scheduler knows, also ones that take no tasks now."""
        return set(self._asked(purpose, "ncores"))

    def silent(self, purpose: str) -> dict[str, float]:
        """Return the workers that seem to be stopped or disconnected, and the seconds of silence.

        It must be called every few seconds; see :class:`daskdl.cluster.losses.Heartbeats`.
        """
        workers = self._asked(purpose, "identity")["workers"]
        last_seen = {address: float(it["last_seen"]) for address, it in workers.items()}
        self._heartbeats.look(last_seen, time.monotonic())
        return self._heartbeats.silent

    def tell(self, message: Mapping[str, Any], timeout: float = 2) -> dict[str, Any]:
        """Send a message to all workers and return the answers.

        Wait up to ``timeout`` s; without an answer from all by then return an empty dict.
        """
        try:
            answers: dict[str, Any] = self._client.sync(
                scheduler_operation(self._client, "broadcast"),
                msg=dict(message),
                on_error="ignore",
                callback_timeout=timeout,
            )
        except UNREACHABLE as error:
            logger.debug("%s was not told: %s", message, error)
            return {}
        return answers

    def install(self, plugin: WorkerPlugin, purpose: str) -> None:
        """Install a plugin on all workers, also on those that arrive later.

        If a worker is lost meanwhile, the scheduler's call fails, and the installation is repeated;
        so a plugin may be removed and set up again. Raises ClusterError when the scheduler is gone,
        a worker lacks daskdl, or workers are lost again and again.
        """
        with daskdl_there(purpose):
            for _ in range(ATTEMPTS):
                try:
                    self._client.register_plugin(plugin)
                    return
                except Exception as error:
                    if isinstance(error, UNREACHABLE):
                        self.check_scheduler(purpose, error)
                    with suppress(Exception):  # or the scheduler would not send it again
                        self._client.unregister_worker_plugin(plugin.name)
                    if not isinstance(error, UNREACHABLE):
                        raise
                    last = error
            raise ClusterError(
                f"{purpose}: expected workers to be there for a second, found that {ATTEMPTS} "
                f"times one was lost ({one_line(last)}); see the workers' logs"
            ) from last

    def lock(self, name: str) -> Any:
        """Return a lock of the scheduler, which releases it when its holder is lost.

        The lock renews its lease at the scheduler until :meth:`drop`.
        """
        from distributed import Lock

        return Lock(name, scheduler_rpc=self._client.scheduler, loop=self._client.loop)

    def drop(self, lock: Any) -> None:
        """Stop the renewals of a lock; Dask itself continues them while the client lives."""
        stop_renewing(self._client, lock)

    def _at_work(self, key: Key, purpose: str) -> str:
        """Return a text on a worker that still computes for the run of a key, and its task."""
        at_work = self._asked(purpose, "processing")
        for worker, keys in sorted(at_work.items()):
            keys_of_run = list(filter(same_run(key), keys))
            if keys_of_run:  # in the order of execution
                name, _, *place, shard = keys_of_run[0]
                iteration = f"iteration {place[0]}, " if place else ""
                return f"worker {worker} still at {iteration}shard {shard} ({name.split('-')[0]})"
        return "no worker at work"

    def running(self, purpose: str) -> dict[str, int]:
        """Return address and threads of the workers that take tasks, possibly none."""
        return self._asked(purpose, "ncores_running")

    def _asked(self, purpose: str, operation: str) -> dict[str, Any]:
        try:
            ask = scheduler_operation(self._client, operation)
            # A lost scheduler breaks its connection. A live one may take long for the first graph,
            # as it imports this package's dependencies, perhaps from a slow file system.
            limit = seconds("transfer-timeout")
            answers: dict[str, Any] = self._client.sync(ask, callback_timeout=limit)
        except UNREACHABLE as error:
            raise ClusterError(
                f"{purpose}: the scheduler at {self._address} does not answer any more; start the "
                "cluster and run again, from the checkpoint if there is one"
            ) from error
        return answers
