"""Other clusters: Dask's cluster objects, clients, and classes named in a YAML file."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from daskdl.cluster.starting.address import one_line
from daskdl.errors import ClusterError, MissingExtraError, SettingsError

if TYPE_CHECKING:
    from distributed import Client

logger = logging.getLogger(__name__)


def is_cluster(thing: Any) -> bool:
    """Return whether an object is a client, or has the interface of distributed's ``Cluster``."""
    return is_client(thing) or hasattr(thing, "scheduler_address")


def is_client(thing: Any) -> bool:
    """Return whether an object is a client of a Dask cluster."""
    return all(hasattr(thing, name) for name in ("scheduler", "submit", "scheduler_info"))


def client_of_other(
    stack: ExitStack, cluster: Any, workers: int | None, timeout: float, name: str = "cluster"
) -> Client:
    """Return a client of a cluster object, or the given client.

    The given object is not closed when the stack ends. A cluster object is scaled to ``workers``;
    ``name`` is for errors. Raises SettingsError for an asynchronous client or cluster, and
    ClusterError when the cluster is closed, does not answer or cannot be scaled.
    """
    from distributed import Client

    kind = type(cluster).__name__
    if getattr(cluster, "asynchronous", False):
        raise SettingsError(
            f"{name}: expected a synchronous one, found {kind} with asynchronous=True; make it "
            "without, or await Trainer.fit(..., client=client)"
        )
    status = getattr(cluster.status, "name", cluster.status)
    if status not in ("running", "connecting"):
        raise ClusterError(f"{name}: expected a running {kind}, found it {status}; start another")
    if is_client(cluster):
        if workers is not None:
            raise SettingsError(
                f"workers: expected with a cluster that can be scaled, found {kind}; scale its "
                "cluster, or leave workers out"
            )
        client: Client = cluster
        return client
    try:
        if workers is not None:
            cluster.scale(workers)
        # The object, not its address: with TLS it has the security settings.
        return stack.enter_context(closing(Client(cluster, timeout=timeout)))
    except (OSError, TimeoutError, AttributeError, ValueError, RuntimeError) as error:
        raise ClusterError(
            f"{name}: expected the scheduler of {kind} to answer within {timeout:g} s and to take "
            f"its workers, found {one_line(error)}; see whether it runs"
        ) from error


def client_of_named(
    stack: ExitStack, path: Path, system: str, options: Mapping[str, Any], jobs: int | None,
    timeout: float,
) -> Client:  # fmt: skip
    """Start the cluster that ``module:Class`` names, and return a client of it.

    ``system`` is a class, or a function that returns a cluster, such as
    ``"dask_kubernetes.operator:KubeCluster"``; the cluster is scaled to ``jobs``, and closed with
    the stack. ``path`` is the YAML file, for errors. Raises MissingExtraError when the module is
    not installed, SettingsError when it has no such name or the result is no cluster, and
    ClusterError when the cluster does not start.
    """
    module, _, name = system.partition(":")
    try:
        home = importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            f"{path}: expected the package of {system}, found {one_line(error)}; "
            f"pip install {module.partition('.')[0].replace('_', '-')}"
        ) from error
    make = getattr(home, name, None)
    if not callable(make):
        raise SettingsError(
            f"{path}: expected system: module:Class, found no {name!r} in {module}; see its "
            "documentation for the name of the cluster's class"
        )
    try:
        cluster = make(**options)
    except Exception as error:  # an unknown class may raise any kind
        raise ClusterError(
            f"{path}: expected settings from which {system} starts, found {one_line(error)}; "
            f"{_what_to_do(error)}"
        ) from error
    if not is_cluster(cluster) or is_client(cluster):
        raise SettingsError(
            f"{path}: expected system: a class of Dask clusters, found {system}, which makes "
            f"{type(cluster).__name__}; name another"
        )
    stack.callback(cluster.close)
    client = client_of_other(stack, cluster, jobs, timeout, str(path))
    logger.warning("%s: Dask's dashboard is at %s", path, client.dashboard_link)
    return client


def _what_to_do(error: BaseException | None) -> str:
    """Return advice for a class that did not start, by its exception."""
    if isinstance(error, TypeError):
        return "give the keyword arguments that it takes"
    while error is not None:
        if isinstance(error, ImportError):
            return "install what it needs"
        error = error.__cause__
    return "see whether it can be reached from here, and what it takes"
