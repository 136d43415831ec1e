"""connect: from "local", an address, a file, or an existing cluster to a Dask client."""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from daskdl.cluster.lasting import Connection, Counted
from daskdl.cluster.starting.address import address_in, check_address, one_line, who_answers
from daskdl.cluster.starting.others import client_of_other, is_cluster
from daskdl.cluster.starting.queue import queue_client
from daskdl.cluster.starting.workers import (
    CONFIG,
    interrupts_are_the_drivers,
    interrupts_later,
    keeping,
    nodes,
    patience,
    undisturbed,
)
from daskdl.errors import ClusterError, SettingsError
from daskdl.kernels.runtime.threads import available_cores

if TYPE_CHECKING:
    from distributed import Client

logger = logging.getLogger(__name__)

#: Seconds to wait for workers; jobs of a queue may take some to start.
PATIENCE = 300


def connect(
    cluster: str | os.PathLike[str] | Client | Any | None = None,
    *,
    workers: int | None = None,
    threads_per_worker: int | Literal["numa"] = 1,
    dashboard: bool = False,
    timeout: float = 10.0,
) -> Connection:
    """Connect to a cluster, or start one, for a `with` block or for the cells of a notebook.

    A cluster that it starts ends with the block, by `close`, or at the latest with the program.

    Parameters
    ----------
    cluster : str, path, Client or Cluster, optional
        - ``"local"``, the default: worker processes on this machine;
        - the address of a scheduler: ``"tcp://node1:8786"``, where weights, samples and pickles
          travel without encryption, or ``"tls://node1:8786"``; docs/daskdl.md shows how to make
          certificates;
        - a scheduler file (``.json``), written by ``dask scheduler --scheduler-file``;
        - a job queue (``.yaml``): ``system`` (one of
          :data:`daskdl.cluster.starting.queue.QUEUES`), ``jobs`` (their number), and the arguments
          of dask-jobqueue's class, such as ``cores``, ``memory`` and ``walltime``. A
          job that ends before the run, by its walltime or otherwise, is replaced by a new one;
        - a gateway (``.yaml``): ``system: gateway``, ``jobs`` (number of workers), ``address`` and
          other options of :func:`daskdl.cluster.starting.queue.gateway_client`;
        - any class of Dask clusters (``.yaml``): ``system: "module:Class"``, ``jobs`` (number of
          workers to scale to, if given) and its keyword arguments;
        - an existing cluster object, such as ``LocalCluster``, ``SSHCluster``, ``KubeCluster``
          or ``coiled.Cluster``, or a Dask client. Neither is closed at the end.
    workers : int, optional
        Number of worker processes of "local", by default cores / ``threads_per_worker``; of jobs of
        a job queue; or of workers to which a gateway or cluster object is scaled.
    threads_per_worker : int or "numa"
        Threads of workers of "local". With "numa" there is by default one process for each NUMA
        node, bound to its cores, with as many threads.
    dashboard : bool
        Whether "local" serves Dask's dashboard; its address is ``client.dashboard_link``.
    timeout : float
        Seconds to wait for the scheduler's answer.

    Returns
    -------
    Connection
        It returns a distributed.Client to a `with` block, and also works as a client itself.

    Raises
    ------
    ClusterError
        When the cluster cannot be reached or started.
    SettingsError
        When ``cluster`` is not one of the above.
    MissingExtraError
        For a job queue without the ``hpc`` extra.

    Examples
    --------
    >>> with connect("local", workers=2) as client:  # doctest: +SKIP
    ...     Trainer(model, loss, optimizer).fit(samples, epochs=3, client=client)
    >>> client = connect("local", workers=2)  # doctest: +SKIP
    >>> client.close()  # doctest: +SKIP
    """
    return Connection(_opened(cluster, workers, threads_per_worker, dashboard, timeout))


@contextmanager
def _opened(
    cluster: Any,
    workers: int | None,
    threads_per_worker: int | Literal["numa"],
    dashboard: bool,
    timeout: float,
) -> Iterator[Client]:
    """Yield the client of `connect`; arguments are the same."""
    spec = "local" if cluster is None else cluster
    if not is_cluster(spec):
        if not isinstance(spec, str | os.PathLike):
            raise _no_cluster(spec)
        spec = os.fspath(spec)
    with ExitStack() as stack:
        stack.enter_context(_environment_as_it_was())
        # Check these first: Dask's own error would come from a coroutine.
        for name, value in {"workers": workers, "threads_per_worker": threads_per_worker}.items():
            if not (value is None or value == "numa" or (isinstance(value, int) and value > 0)):
                raise SettingsError(
                    f"{name}: expected at least 1, found {value!r}; leave it out for one a core"
                )
        if not isinstance(spec, str):
            client = client_of_other(stack, spec, workers, timeout)
        elif spec == "local":
            with interrupts_later():  # do not interrupt a cluster that is starting
                client = _local(stack, workers, threads_per_worker, dashboard)
        elif "://" in spec:
            client = _remote(stack, spec, spec, timeout)
        elif Path(spec).suffix == ".json":
            client = _remote(stack, spec, address_in(Path(spec)), timeout)
        elif Path(spec).suffix in (".yaml", ".yml"):
            client = queue_client(stack, Path(spec), workers, timeout)
            client.register_plugin(undisturbed())
        else:
            raise _no_cluster(spec)
        yield client


def _no_cluster(cluster: object) -> SettingsError:
    return SettingsError(
        'cluster: expected "local", an address such as tcp://host:8786, a scheduler file (.json), '
        f"a job queue (.yaml), a Dask cluster or a client, found {cluster!r}; give one of these"
    )


def wait_for(client: Client, workers: int, purpose: str, patience: float = PATIENCE) -> None:
    """Wait until ``workers`` have arrived; log a warning if they have not yet.

    Raises ClusterError when they have not arrived after ``patience`` seconds; it begins with
    ``purpose``.
    """
    there, address = len(client.nthreads()), client.scheduler.address
    if there >= workers:
        return
    logger.warning(
        "%s: waiting up to %g s for %d workers at %s, of which %d are there",
        purpose, patience, workers, address, there,
    )  # fmt: skip
    try:
        client.wait_for_workers(workers, timeout=patience)
    except TimeoutError as error:
        raise ClusterError(
            f"{purpose}: expected {workers} workers at {address} within {patience:g} s, found "
            f"{len(client.nthreads())}; start workers, or see whether their jobs have started"
        ) from error


def _local(
    stack: ExitStack, workers: int | None, threads: int | Literal["numa"], dashboard: bool
) -> Client:
    from distributed import Client, LocalCluster

    plugins = [interrupts_are_the_drivers(), undisturbed()]
    if threads == "numa":
        cores = nodes()
        plugins.append(keeping(cores))
        workers, threads = workers or len(cores), min(map(len, cores))
    else:
        workers = workers or max(1, available_cores() // threads)
    stack.enter_context(_LOCAL)
    folder = stack.enter_context(
        tempfile.TemporaryDirectory(prefix="daskdl-", ignore_cleanup_errors=True)
    )
    try:
        with _environment_as_it_was():
            cluster = LocalCluster(
                n_workers=workers,
                threads_per_worker=threads,
                processes=True,
                # Any free port: several runs on one machine must not compete for 8787.
                dashboard_address="127.0.0.1:0",
                scheduler_kwargs={"dashboard": dashboard},
                worker_dashboard_address=None,
                local_directory=folder,
                silence_logs=logging.CRITICAL,
            )
    except (OSError, RuntimeError, TimeoutError) as error:
        raise ClusterError(
            f"local cluster: expected {workers} worker processes to start, found "
            f"{one_line(error)}; when a script starts them, its own work must stand under "
            'if __name__ == "__main__"'
        ) from error
    stack.enter_context(cluster)
    client = stack.enter_context(closing(Client(cluster)))
    for plugin in plugins:
        client.register_plugin(plugin)
    return client


def _remote(stack: ExitStack, spec: str, address: str, timeout: float) -> Client:
    from distributed import Client

    check_address(spec, address)
    try:
        answering = who_answers(address, timeout)
        if answering == "Scheduler":
            return stack.enter_context(closing(Client(address, timeout=timeout)))
    except (OSError, TimeoutError) as error:
        raise ClusterError(
            f"{spec}: expected a Dask scheduler to answer within {timeout:g} s, found none; see "
            "whether it runs and can be reached from here"
        ) from error
    raise ClusterError(
        f"{spec}: expected a Dask scheduler at {address}, found {answering}; give the address "
        "that the scheduler says when it starts"
    )


@contextmanager
def _environment_as_it_was() -> Iterator[None]:
    # A Nanny writes OMP_NUM_THREADS=1 and similar variables into this process, where they would
    # override the settings of the next cluster.
    import dask
    import distributed  # noqa: F401  for its configuration

    names = {*dask.config.get("distributed.nanny.pre-spawn-environ", {}), "PYTHONHASHSEED"}
    before = {name: os.environ.get(name) for name in names}
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def quiet() -> Iterator[None]:
    """Suppress messages of connections when workers end, for instance by Ctrl-C."""
    names = "scheduler", "nanny", "comm", "core", "batched"
    loggers = [logging.getLogger(f"distributed.{name}") for name in names]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    logging.getLogger("asyncio").addFilter(_not_of_dask)
    try:
        yield
    finally:
        logging.getLogger("asyncio").removeFilter(_not_of_dask)
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)


@contextmanager
def _settings() -> Iterator[None]:
    import dask

    # A closed client resets the scheduler to its value before that client: keep the current value.
    scheduler = {"scheduler": dask.config.get("scheduler", None)}
    with dask.config.set(CONFIG | patience() | scheduler), quiet():
        yield


#: Settings of this process while it has local clusters.
_LOCAL = Counted(_settings)


def _not_of_dask(record: logging.LogRecord) -> bool:
    """Whether a message of asyncio is not about a task of Dask that nobody awaits any more."""
    return "distributed" not in record.getMessage()
