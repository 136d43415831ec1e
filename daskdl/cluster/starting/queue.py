"""Job queues and gateways: from a YAML file to workers that the site's system starts."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from contextlib import ExitStack, closing
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from daskdl.cluster.starting import workers as configuration
from daskdl.cluster.starting.address import one_line
from daskdl.cluster.starting.others import client_of_named
from daskdl.errors import ClusterError, SettingsError, needed

if TYPE_CHECKING:
    from distributed import Client


def gateway_client(
    stack: ExitStack, path: Path, options: Mapping[str, Any], workers: int
) -> Client:
    """Start a cluster by a gateway, and return a client of it.

    The cluster ends with the stack. The gateway replaces lost workers. Clients reach only the
    scheduler, through the gateway's proxy, so that training sends weights through the scheduler.

    ``options`` of the YAML file are ``address`` and, if different, ``proxy_address`` and
    ``public_address`` of the gateway; ``auth``, "basic", "kerberos" or "jupyterhub"; and options of
    the cluster, such as ``worker_cores``. Defaults are in Dask's configuration under ``gateway``.
    Raises MissingExtraError without dask-gateway, and ClusterError when the gateway does not answer
    or does not start a cluster.
    """
    with needed(
        f"{path}: expected dask-gateway for a cluster of a gateway, found it not installed; "
        "pip install daskdl[gateway]"
    ):
        from dask_gateway import GatewayCluster, GatewayClusterError, GatewayServerError
    mistakes = OSError, ValueError, TypeError, RuntimeError
    try:
        cluster = GatewayCluster(**options)
        stack.callback(cluster.shutdown)
        cluster.scale(workers)
        client: Client = stack.enter_context(closing(cluster.get_client()))
    except (*mistakes, GatewayClusterError, GatewayServerError) as error:
        where = options.get("address", "the address in Dask's configuration")
        raise ClusterError(
            f"{path}: expected the gateway at {where} to start a cluster, found "
            f"{type(error).__name__}: {one_line(error)}; see whether "
            "it is up, and what options it offers"
        ) from error
    return client


logger = logging.getLogger(__name__)

#: Job queues, and their classes in dask-jobqueue.
QUEUES = {
    "slurm": "SLURMCluster",
    "pbs": "PBSCluster",
    "lsf": "LSFCluster",
    "sge": "SGECluster",
    "htcondor": "HTCondorCluster",
    "oar": "OARCluster",
    "moab": "MoabCluster",
}


def queue_client(stack: ExitStack, path: Path, jobs: int | None, timeout: float) -> Client:
    """Start the jobs that a YAML file describes, and return a client of them.

    The scheduler runs in this process. Its dashboard uses any free port, since on a login node 8787
    is often taken; its address is logged.
    """
    import dask
    from distributed import Client

    options = queue_options(path)
    name, jobs_in_file = options.pop("system"), options.pop("jobs", None)
    if ":" in name:
        return client_of_named(stack, path, name, options, jobs or jobs_in_file, timeout)
    jobs = jobs or jobs_in_file or 1
    if name == "gateway":
        return gateway_client(stack, path, options, jobs)
    with needed(
        f"{path}: expected dask-jobqueue for a cluster of {name} jobs, found it not "
        "installed; pip install daskdl[hpc]"
    ):
        import dask_jobqueue
    # Set these here, since the scheduler runs in this process.
    overrides = configuration.QUEUE_CONFIG | configuration.patience()
    stack.enter_context(dask.config.set(overrides))
    try:
        scheduler = {"dashboard_address": ":0", **options.pop("scheduler_options", {})}
        kind = getattr(dask_jobqueue, QUEUES[name])
        cluster = stack.enter_context(kind(scheduler_options=scheduler, **options))
        cluster.scale(jobs=jobs)
        cluster.adapt(minimum_jobs=jobs, maximum_jobs=jobs)
    except (TypeError, ValueError, OSError, RuntimeError) as error:
        raise ClusterError(
            f"{path}: expected settings from which {QUEUES[name]} starts, found {one_line(error)}; "
            "give the arguments that dask-jobqueue takes"
        ) from error
    client: Client = stack.enter_context(closing(Client(cluster, timeout=timeout)))
    logger.warning("%s: Dask's dashboard is at %s", path, client.dashboard_link)
    return client


def queue_options(path: Path) -> dict[str, Any]:
    """Return a YAML file's checked settings: ``system``, ``jobs``, dask-jobqueue's arguments."""
    import yaml

    try:
        text = path.read_text(encoding="utf-8")
        content = yaml.safe_load(text)
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise SettingsError(
            f"{path}: expected a job queue's YAML, found {one_line(error)}; mend the file"
        ) from error
    if not isinstance(content, dict):
        raise SettingsError(
            f"{path}: expected a job queue's YAML, such as system: slurm, found {content!r}; "
            "write one setting a line"
        )
    systems = (*QUEUES, "gateway")
    system = str(content.get("system"))
    named = all(part.isidentifier() for part in re.split("[.:]", system)) and system.count(":") == 1
    if system not in systems and not named:
        raise SettingsError(
            f"{path}: expected system: one of {', '.join(systems)} or module:Class, "
            f"found {content.get('system')!r}"
        )
    options: dict[str, Any] = dict(content)
    jobs = options.get("jobs", 1)
    if not isinstance(jobs, int) or jobs < 1:
        raise SettingsError(
            f"{path}: expected jobs: at least 1, found {jobs!r}; set how many jobs to start"
        )
    if named:  # other settings are the class's own arguments
        return options
    if "walltime" in options:
        # Keep the text: YAML reads 12:00:00 as 43200, and Slurm takes that for minutes, 30 days.
        options["walltime"] = str(yaml.load(text, yaml.BaseLoader)["walltime"])
    # LSF leaves out the seconds.
    seconds = "" if content["system"] == "lsf" else r":(?P<seconds>\d\d)"
    form = rf"(?:(?P<days>\d+)-)?(?P<hours>\d+):(?P<minutes>\d\d){seconds}"
    walltime = re.fullmatch(form, str(options.get("walltime", "")))
    if walltime and "worker_extra_args" not in options:
        # A worker that ends itself before its job does passes its data on (dask-jobqueue #122).
        times = {name: int(number) for name, number in walltime.groupdict("0").items()}
        total = int(timedelta(**times).total_seconds())
        margin = min(300, total // 10)
        lifetime = f"--lifetime {total - margin}s --lifetime-stagger {margin // 2}s"
        options["worker_extra_args"] = lifetime.split()
    return options
