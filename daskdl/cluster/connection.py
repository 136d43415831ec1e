"""Cluster: "local", an address, a scheduler file or a job queue's YAML -> a Dask client."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from daskdl.cluster.gateway import gateway_client
from daskdl.cluster.interrupts import interrupts_are_the_drivers, interrupts_later
from daskdl.cluster.numa import keeping, nodes
from daskdl.cluster.undisturbed import undisturbed
from daskdl.errors import ClusterError, MissingExtraError, SettingsError
from daskdl.kernels.runtime.threads import available_cores

if TYPE_CHECKING:
    from distributed import Client

#: Job queues, and the class of dask-jobqueue for each.
QUEUES = {
    "slurm": "SLURMCluster",
    "pbs": "PBSCluster",
    "lsf": "LSFCluster",
    "sge": "SGECluster",
    "htcondor": "HTCondorCluster",
    "oar": "OARCluster",
    "moab": "MoabCluster",
}

#: Seconds to wait for workers.
PATIENCE = 300

#: Seconds to wait for the rest of a scheduler file, which may just be being written.
WRITING = 2.0

# Compression costs time and float32 does not compress. A shard stays where its partition lies.
_CONFIG = {
    "distributed.comm.compression": False,
    "distributed.scheduler.work-stealing": False,
    "distributed.worker.connections.incoming": 1000,
    # Dask gives up a worker for good that is just starting again 15 s after it was lost before.
    "distributed.deploy.lost-worker-timeout": "1 day",
}
# A job that is lost has left the queue: after this time another is put there in its place.
_QUEUE_CONFIG = {**_CONFIG, "distributed.deploy.lost-worker-timeout": "60 s"}


@contextmanager
def connect(
    cluster: str | os.PathLike[str] | None = None,
    *,
    workers: int | None = None,
    threads_per_worker: int | Literal["numa"] = 1,
    dashboard: bool = False,
    timeout: float = 10.0,
) -> Iterator[Client]:
    """Connect to a cluster, or start one; what was started is ended on leaving.

    Parameters
    ----------
    cluster : str or path, optional
        - ``"local"``, the default: worker processes on this machine;
        - the address of a scheduler, such as ``"tcp://node1:8786"``;
        - a scheduler file (``.json``), as ``dask scheduler --scheduler-file`` writes it;
        - a job queue (``.yaml``): ``system`` (one of :data:`QUEUES`), ``jobs`` (how many), and
          the arguments of dask-jobqueue's class, such as ``cores``, ``memory`` and ``walltime``. A
          job that ends before the run, by its walltime or otherwise, is replaced by a new one;
        - a gateway (``.yaml``): ``system: gateway``, ``jobs`` (how many workers), ``address`` and
          what else :func:`daskdl.cluster.gateway.gateway_client` takes.
    workers : int, optional
        Worker processes of "local", by default as many as its cores give the threads of; jobs of a
        job queue, or workers of a gateway.
    threads_per_worker : int or "numa"
        Of "local". With "numa" there is a process for each NUMA node, by default, which keeps to
        its cores and has as many threads.
    dashboard : bool
        Whether "local" serves Dask's dashboard; its address is ``client.dashboard_link``.
    timeout : float
        Seconds until a scheduler that does not answer is an error.

    Yields
    ------
    distributed.Client

    Raises
    ------
    ClusterError
        When the cluster cannot be reached or started.
    SettingsError
        When ``cluster`` is none of the above.
    MissingExtraError
        For a job queue without the ``hpc`` extra.

    Examples
    --------
    >>> with connect("local", workers=2) as client:  # doctest: +SKIP
    ...     Trainer(model, loss, optimizer).fit(samples, epochs=3, client=client)
    """
    spec = "local" if cluster is None else os.fspath(cluster)
    with ExitStack() as stack:
        stack.enter_context(_environment_as_it_was())
        # Checked first: Dask's own complaint would come from a coroutine.
        for name, value in {"workers": workers, "threads_per_worker": threads_per_worker}.items():
            if not (value is None or value == "numa" or (isinstance(value, int) and value > 0)):
                raise SettingsError(f"{name}: expected at least 1, found {value!r}")
        if spec == "local":
            with interrupts_later():  # not to a cluster that is not quite there
                client = _local(stack, workers, threads_per_worker, dashboard)
        elif "://" in spec:
            client = _remote(stack, spec, spec, timeout)
        elif Path(spec).suffix == ".json":
            client = _remote(stack, spec, _address_in(Path(spec)), timeout)
        elif Path(spec).suffix in (".yaml", ".yml"):
            client = _queue(stack, Path(spec), workers, timeout)
            client.register_plugin(undisturbed())
        else:
            raise SettingsError(
                'cluster: expected "local", an address such as tcp://host:8786, a scheduler file '
                f"(.json) or a job queue (.yaml), found {spec!r}"
            )
        yield client


def wait_for(client: Client, workers: int, what: str) -> None:
    """Wait until so many workers are there, or raise a ClusterError that begins with ``what``."""
    try:
        client.wait_for_workers(workers, timeout=PATIENCE)
    except TimeoutError as error:
        raise ClusterError(
            f"{what}: expected {workers} workers within {PATIENCE} s, found "
            f"{len(client.nthreads())}; see whether the jobs have started"
        ) from error


def _local(
    stack: ExitStack, workers: int | None, threads: int | Literal["numa"], dashboard: bool
) -> Client:
    import dask
    from distributed import Client, LocalCluster

    plugins = [interrupts_are_the_drivers(), undisturbed()]
    if threads == "numa":
        cores = nodes()
        plugins.append(keeping(cores))
        workers, threads = workers or len(cores), min(map(len, cores))
    else:
        workers = workers or max(1, available_cores() // threads)
    stack.enter_context(dask.config.set(_CONFIG))
    stack.enter_context(quiet())
    folder = stack.enter_context(
        tempfile.TemporaryDirectory(prefix="daskdl-", ignore_cleanup_errors=True)
    )
    try:
        with _environment_as_it_was():
            cluster = LocalCluster(
                n_workers=workers,
                threads_per_worker=threads,
                processes=True,
                # Any free port: several runs on one machine must not fight for 8787.
                dashboard_address="127.0.0.1:0",
                scheduler_kwargs={"dashboard": dashboard},
                worker_dashboard_address=None,
                local_directory=folder,
                silence_logs=logging.CRITICAL,
            )
    except (OSError, RuntimeError, TimeoutError) as error:
        raise ClusterError(
            f"local cluster: expected {workers} worker processes to start, found "
            f"{_one_line(error)}; when a script starts them, its own work must stand under "
            'if __name__ == "__main__"'
        ) from error
    stack.enter_context(cluster)
    client = stack.enter_context(Client(cluster))
    for plugin in plugins:
        client.register_plugin(plugin)
    return client


def _remote(stack: ExitStack, spec: str, address: str, timeout: float) -> Client:
    from distributed import Client

    _check_address(spec, address)
    try:
        found = _who_answers(address, timeout)
        if found == "Scheduler":
            return stack.enter_context(Client(address, timeout=timeout))
    except (OSError, TimeoutError) as error:
        raise ClusterError(
            f"{spec}: expected a Dask scheduler to answer within {timeout:g} s, found none; see "
            "whether it runs and can be reached from here"
        ) from error
    raise ClusterError(
        f"{spec}: expected a Dask scheduler at {address}, found {found}; give the address "
        "that the scheduler says when it starts"
    )


def _who_answers(address: str, timeout: float) -> str:
    # A Client would wait for ever on a port that is open and silent, and one that fails to start
    # leaves itself behind as the default of this process.
    from distributed.core import rpc
    from distributed.security import Security

    async def ask() -> str:
        options = Security().get_connection_args("client")
        async with rpc(address, timeout=timeout, connection_args=options) as scheduler:
            return str((await scheduler.identity())["type"])

    async def ask_in_time() -> str:
        return await asyncio.wait_for(ask(), timeout)

    # In a thread, since a notebook has a running loop already.
    with ThreadPoolExecutor(1) as pool:
        try:
            return pool.submit(asyncio.run, ask_in_time()).result()
        except OSError:
            raise
        except Exception as error:  # of whatever kind another program's answer leads to
            return f"none ({type(error).__name__}: {_one_line(error)})"


def _check_address(spec: str, address: str) -> None:
    from distributed.comm.addressing import get_address_host_port, parse_address
    from distributed.comm.registry import get_backend

    try:
        scheme, _ = parse_address(address)
        get_backend(scheme)
        if scheme in ("tcp", "tls"):
            get_address_host_port(address)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ClusterError(
            f"{spec}: expected the address of a Dask scheduler, such as tcp://host:8786, found "
            f"{address!r} ({_one_line(error)})"
        ) from error


def _address_in(path: Path) -> str:
    import json

    if not path.is_file():
        raise ClusterError(
            f"{path}: expected a scheduler file, found none; start the scheduler with "
            "--scheduler-file and wait until it has written it"
        )
    limit = time.monotonic() + WRITING
    while True:
        try:
            return str(json.loads(path.read_text())["address"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            if isinstance(error, ValueError) and time.monotonic() < limit:
                time.sleep(0.02)
                continue
            raise ClusterError(
                f"{path}: expected a scheduler file, as dask scheduler --scheduler-file writes it, "
                f"found no address in it ({type(error).__name__}: {error})"
            ) from error


def _queue(stack: ExitStack, path: Path, jobs: int | None, timeout: float) -> Client:
    import dask
    from distributed import Client

    options = _queue_options(path)
    name, jobs_in_file = options.pop("system"), options.pop("jobs", 1)
    jobs = jobs or jobs_in_file
    if name == "gateway":
        return gateway_client(stack, path, options, jobs)
    try:
        import dask_jobqueue
    except ImportError as error:
        raise MissingExtraError(
            f"{path}: expected dask-jobqueue for a cluster of {name} jobs, found it not "
            "installed; pip install daskdl[hpc]"
        ) from error
    stack.enter_context(dask.config.set(_QUEUE_CONFIG))  # the scheduler runs in this process
    try:
        cluster = stack.enter_context(getattr(dask_jobqueue, QUEUES[name])(**options))
        cluster.scale(jobs=jobs)
        cluster.adapt(minimum_jobs=jobs, maximum_jobs=jobs)
    except (TypeError, ValueError, OSError, RuntimeError) as error:
        raise ClusterError(
            f"{path}: expected settings from which {QUEUES[name]} starts, found {_one_line(error)}"
        ) from error
    return stack.enter_context(Client(cluster, timeout=timeout))


def _queue_options(path: Path) -> dict[str, Any]:
    import yaml

    try:
        text = path.read_text(encoding="utf-8")
        content = yaml.safe_load(text)
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise SettingsError(
            f"{path}: expected a job queue's YAML, found {_one_line(error)}"
        ) from error
    if not isinstance(content, dict):
        raise SettingsError(
            f"{path}: expected a job queue's YAML, such as system: slurm, found {content!r}"
        )
    systems = (*QUEUES, "gateway")
    if str(content.get("system")) not in systems:
        raise SettingsError(
            f"{path}: expected system: one of {', '.join(systems)}, found {content.get('system')!r}"
        )
    options: dict[str, Any] = dict(content)
    jobs = options.get("jobs", 1)
    if not isinstance(jobs, int) or jobs < 1:
        raise SettingsError(f"{path}: expected jobs: at least 1, found {jobs!r}")
    if "walltime" in options:
        # As it is written: YAML reads 12:00:00 as 43200 seconds, Slurm that as 30 days of minutes.
        options["walltime"] = str(yaml.load(text, yaml.BaseLoader)["walltime"])
    # LSF leaves out the seconds.
    seconds = "" if content["system"] == "lsf" else r":(?P<seconds>\d\d)"
    form = rf"(?:(?P<days>\d+)-)?(?P<hours>\d+):(?P<minutes>\d\d){seconds}"
    walltime = re.fullmatch(form, str(options.get("walltime", "")))
    if walltime and "worker_extra_args" not in options:
        # A worker that ends by itself before its job hands on what it holds (dask-jobqueue #122).
        found = {name: int(number) for name, number in walltime.groupdict("0").items()}
        days, hours, minutes, rest = (
            found.get(name, 0) for name in ("days", "hours", "minutes", "seconds")
        )
        total = 86400 * days + 3600 * hours + 60 * minutes + rest
        margin = min(300, total // 10)
        options["worker_extra_args"] = [
            "--lifetime",
            f"{total - margin}s",
            "--lifetime-stagger",
            f"{margin // 2}s",
        ]
    return options


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())


@contextmanager
def _environment_as_it_was() -> Iterator[None]:
    # A Nanny writes OMP_NUM_THREADS=1 and its like into this process, where they would then rule
    # over the settings of the next cluster.
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
    """Keep what connections say when workers are ended, for instance by Ctrl-C, off the screen."""
    names = (
        "distributed.scheduler",
        "distributed.nanny",
        "distributed.comm",
        "distributed.core",
        "distributed.batched",
    )
    loggers = [logging.getLogger(name) for name in names]
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


def _not_of_dask(record: logging.LogRecord) -> bool:
    """Whether asyncio speaks of another task than Dask's, for which nothing waits any more."""
    return "distributed" not in record.getMessage()
