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
        """Send the state again next time: the driver has changed it."""

    def close(self) -> None:
        """Let go of the samples."""


#: Names of the engines that a caller may ask for.
ENGINES = ("auto", "graph", "gang")


def choose(engine: str, adaptive: bool = False) -> str:
    """Return "graph" or "gang" for one of :data:`ENGINES`.

    A gang is ahead: what an iteration costs two workers of one machine beside its computation is
    less than a tenth of the graph engine's for 1 MB of weights, and less than half for 28 and 100
    MB (``python -m ci.bench.engine``). Both need workers that can speak to each other, as all tasks
    of Dask's do. But a gang has one task on each worker, whatever there is to do, from which a
    cluster that is ``adaptive``, whose workers follow the number of its tasks, does not learn that
    it should grow.
    """
    if engine != "auto":
        return engine
    return "graph" if adaptive else "gang"


def is_adaptive(client: Client) -> bool:
    """Return whether the client was made of a cluster whose size follows its tasks.

    One of a job queue adapts itself only to replace jobs that have ended: its size is fixed.
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
    """Return the engine for a fit; without a client that is the one of this process.

    ``overwrite``: whether nobody needs the state that a group began with once that has begun.
    """
    if client is None:
        return InProcessEngine(job, samples, validation, overwrite)
    if choose(engine, is_adaptive(client)) == "gang":
        from daskdl.train.gang.engine import GangEngine

        return GangEngine(client, job, samples, validation)
    from daskdl.train.engines.graph import GraphEngine

    return GraphEngine(client, job, samples, validation)
