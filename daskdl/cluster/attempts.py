"""Attempts: computations on a cluster that begin again when data were lost with their workers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from functools import cache
from typing import TypeVar

from daskdl.cluster.client import Cluster
from daskdl.cluster.failures import daskdl_there, for_caller
from daskdl.cluster.settings import setting
from daskdl.errors import ClusterError, type_and_line

logger = logging.getLogger(__name__)

T = TypeVar("T")


@cache
def lost() -> tuple[type[BaseException], ...]:
    """Return the exceptions that mean that data were lost with their workers.

    This is a function, as the import of distributed is slow, and a fit in one process needs none.
    """
    from distributed import KilledWorker

    # Dask's FuturesCancelledError is one of the first, its CommClosedError one of the last.
    return CancelledError, asyncio.CancelledError, KilledWorker, TimeoutError, OSError


def until_done(
    cluster: Cluster,
    purpose: str,
    attempt: Callable[[], T],
    after_loss: Callable[[], None],
    functions: Sequence[str] = (),
) -> T:
    """Return the result of the first successful attempt of up to ``daskdl.attempts``.

    Before another attempt ``after_loss`` releases data that may be lost. ``functions`` are the
    names of user functions in the tasks, which may have ended the processes. Raises TrainingError
    for an exception in a task, with its place, and ClusterError when the scheduler is gone, or each
    attempt lost data.
    """
    tries = int(setting("attempts"))
    for remaining in reversed(range(tries)):
        try:
            with for_caller(), daskdl_there(purpose):
                return attempt()
        except lost() as error:
            cluster.check_scheduler(purpose, error)
            if not remaining:
                losses = cluster.losses()
                called = f"; the tasks call {', '.join(functions)}" if functions else ""
                raise ClusterError(
                    f"{purpose}: tried {tries} times, each time data were lost with their "
                    f"workers, at last by {type_and_line(error)}{losses}"
                    f"{called}; see the workers' logs for what ends their processes"
                ) from error
            logger.warning(
                "%s: starting again, since %s%s", purpose, type_and_line(error), cluster.losses()
            )
            after_loss()
    raise AssertionError("the last attempt has returned or raised")
