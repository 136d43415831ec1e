"""Worker plugins: set up on all workers, also while some of them are lost."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from daskdl.cluster.failures import daskdl_there
from daskdl.cluster.starting.address import one_line
from daskdl.errors import ClusterError

if TYPE_CHECKING:
    from distributed import Client, WorkerPlugin

#: How often workers are told of a plugin while one of them is lost meanwhile.
ATTEMPTS = 5


def installed(
    client: Client,
    plugin: WorkerPlugin,
    what: str,
    check_scheduler: Callable[[str, BaseException], None],
) -> None:
    """Have all workers, also those that come later, set up a plugin.

    The scheduler tells all workers, and hands on the broken connection of one that is lost
    meanwhile. Those that are left are then told again.

    Parameters
    ----------
    client : distributed.Client
    plugin : WorkerPlugin
        May be taken away and set up again.
    what : str
        What it is for, for the message.
    check_scheduler : callable
        Takes ``what`` and an error, and raises when the scheduler is gone.

    Raises
    ------
    ClusterError
        When the scheduler is gone, a worker lacks daskdl, or workers are lost again and again.
    """
    with daskdl_there(what):
        for _ in range(ATTEMPTS):
            try:
                client.register_plugin(plugin)
                return
            except (OSError, TimeoutError, AttributeError, RuntimeError, ValueError) as error:
                check_scheduler(what, error)
                _forget(client, plugin)
                last = error
            except Exception:
                _forget(client, plugin)
                raise
        raise ClusterError(
            f"{what}: expected workers to be there for a second, found that {ATTEMPTS} times one "
            f"was lost ({one_line(last)}); see the workers' logs"
        ) from last


def _forget(client: Client, plugin: WorkerPlugin) -> None:
    """Have the scheduler forget a plugin, which it would keep, and not send again."""
    with suppress(Exception):
        client.unregister_worker_plugin(plugin.name)
