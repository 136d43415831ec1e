"""Gateway: a cluster that dask-gateway starts, where a site offers it in place of its job queue."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from daskdl.errors import ClusterError, MissingExtraError

if TYPE_CHECKING:
    from distributed import Client

#: Settings of the gateway itself; all others in a YAML are options of the site for its clusters.
OF_THE_GATEWAY = ("address", "proxy_address", "public_address", "auth")


def gateway_client(
    stack: ExitStack, path: Path, options: Mapping[str, Any], workers: int
) -> Client:
    """Have a gateway start a cluster, and return a client of it.

    The cluster ends with the stack. A worker that is lost is replaced by the gateway. Clients reach
    the scheduler only, through the gateway's proxy, so that the engines of training hand weights
    through it.

    Parameters
    ----------
    stack : ExitStack
    path : Path
        Of the YAML, for errors.
    options : mapping
        Its content: ``address`` and, where they differ, ``proxy_address`` and ``public_address`` of
        the gateway; ``auth``, "basic", "kerberos" or "jupyterhub"; options of the cluster, such as
        ``worker_cores``. What is left out is taken from Dask's configuration, under ``gateway``.
    workers : int
        How many.

    Raises
    ------
    MissingExtraError
        Without dask-gateway.
    ClusterError
        When the gateway does not answer or does not start a cluster.
    """
    try:
        from dask_gateway import GatewayCluster, GatewayClusterError, GatewayServerError
    except ImportError as error:
        raise MissingExtraError(
            f"{path}: expected dask-gateway for a cluster of a gateway, found it not installed; "
            "pip install daskdl[gateway]"
        ) from error
    mistakes = OSError, ValueError, TypeError, RuntimeError
    own = {name: options[name] for name in OF_THE_GATEWAY if name in options}
    more = {name: value for name, value in options.items() if name not in own}
    try:
        cluster = GatewayCluster(**own, **more)
        stack.callback(cluster.shutdown)
        cluster.scale(workers)
        client: Client = stack.enter_context(cluster.get_client())
    except (*mistakes, GatewayClusterError, GatewayServerError) as error:
        where = own.get("address", "the address in Dask's configuration")
        raise ClusterError(
            f"{path}: expected the gateway at {where} to start a cluster, found "
            f"{type(error).__name__}: {' '.join(str(error).split())}; see whether "
            "it is up, and what options it offers"
        ) from error
    return client
