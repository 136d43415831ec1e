"""Engines: which of them runs a fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from daskdl.data import SampleSet
from daskdl.data.batches import Share
from daskdl.errors import SettingsError
from daskdl.train.engines.inprocess import InProcessEngine
from daskdl.train.engines.job import Job
from daskdl.train.engines.step import State

if TYPE_CHECKING:
    from distributed import Client


class Engine(Protocol):
    """Runs iterations."""

    group_limit: int

    def run(self, state: State, shares: Sequence[Share]) -> State:
        """Return the state after the iterations that ``shares`` describe, with their records."""

    def evaluate(self, state: State, batch_size: int) -> list[float]:
        """Return the mean loss over the validation samples, and each metric of them."""

    def forget_state(self) -> None:
        """Note that the driver has changed the state: it is sent again next time."""

    def close(self) -> None:
        """Release the samples."""


#: Names of the engines that a caller may ask for.
ENGINES = ("auto", "graph", "gang")


def choose(engine: str, adaptive: bool = False) -> str:
    """Return "graph" or "gang" for one of :data:`ENGINES`.

    A gang is faster: besides computing, an iteration of two workers on one machine costs less than
    a tenth of the graph engine's for 1 MB of weights, and less than half for 28 and 100 MB
    (``python -m ci.bench.engine``). But a gang has one task on each worker, whatever the work. An
    ``adaptive`` cluster follows the number of tasks, and would not grow.
    """
    if engine != "auto":
        return engine
    return "graph" if adaptive else "gang"


def is_adaptive(client: Client) -> bool:
    """Return whether the client's cluster changes its size with the number of tasks.

    A job queue's cluster adapts only to replace jobs that have ended: its size is fixed.
    """
    adaptive = getattr(client.cluster, "_adaptive", None)
    if adaptive is None or adaptive.state in ("inactive", "stopped"):
        return False
    return bool(adaptive.minimum != adaptive.maximum)


def check_engine(engine: str) -> None:
    """Raise a SettingsError unless there is such an engine."""
    if engine not in ENGINES:
        raise SettingsError(
            f"Trainer.fit, engine: expected one of {', '.join(ENGINES)}, found {engine!r}; "
            "leave it out for the best one"
        )


def make_engine(
    engine: str,
    client: Client | None,
    job: Job,
    samples: SampleSet,
    validation: SampleSet | None,
    overwrite: bool = False,
) -> Engine:
    """Return the engine for a fit; without a client it runs in this process.

    ``overwrite``: whether the state at a group's beginning may be changed by the group.
    """
    if client is None:
        return InProcessEngine(job, samples, validation, overwrite)
    if choose(engine, is_adaptive(client)) == "gang":
        from daskdl.train.gang.engine import GangEngine

        return GangEngine(client, job, samples, validation)
    from daskdl.train.engines.graph import GraphEngine

    return GraphEngine(client, job, samples, validation)
