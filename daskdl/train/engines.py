"""Engines: which of them runs a fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from daskdl.data import SampleSet
from daskdl.errors import SettingsError
from daskdl.train.inprocess import InProcessEngine
from daskdl.train.job import Job
from daskdl.train.loop import Engine

if TYPE_CHECKING:
    from distributed import Client

#: Names of the engines that a caller may ask for.
ENGINES = ("auto", "graph", "gang")

#: Workers up to which the graph engine serves; beyond, its tasks keep the scheduler busy.
FEW_WORKERS = 8

#: Bytes of weights up to which it does; beyond, weights from one worker to all take too long.
SMALL_MODEL = 1 << 20


def choose(engine: str, workers: int, model_bytes: int) -> str:
    """Return "graph" or "gang".

    Parameters
    ----------
    engine : str
        One of :data:`ENGINES`. For "auto" it is the graph engine if there is one worker, or if
        there are at most :data:`FEW_WORKERS` and the weights have at most :data:`SMALL_MODEL`
        bytes; otherwise the gang engine.
    workers : int
    model_bytes : int

    Raises
    ------
    SettingsError
        When there is no such engine.
    """
    check_engine(engine)
    if engine != "auto":
        return engine
    few = workers == 1 or (workers <= FEW_WORKERS and model_bytes <= SMALL_MODEL)
    return "graph" if few else "gang"


def check_engine(engine: str) -> None:
    """Raise a SettingsError unless there is such an engine."""
    if engine not in ENGINES:
        raise SettingsError(
            f"Trainer.fit, engine: expected one of {', '.join(ENGINES)}, found {engine!r}"
        )


def make_engine(
    engine: str,
    client: Client | None,
    job: Job,
    samples: SampleSet,
    validation: SampleSet | None,
    model_bytes: int,
) -> Engine:
    """Return the engine for a fit; without a client that is the one of this process."""
    if client is None:
        return InProcessEngine(job, samples, validation)
    from daskdl.train.channel import Cluster

    # With an engine that was named nobody is asked, and a fit may begin before its workers come.
    workers = len(Cluster(client).workers("start of the fit")) if engine == "auto" else 0
    if choose(engine, workers, model_bytes) == "gang":
        from daskdl.train.gang import GangEngine

        return GangEngine(client, job, samples, validation)
    from daskdl.train.graph import GraphEngine

    return GraphEngine(client, job, samples, validation)
