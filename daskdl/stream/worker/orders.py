"""Orders of the driver to a session on a worker, and the session's reports.

The driver asks every session several times a second, always with all its orders. A session that was
not asked for a while assumes that the driver is lost or has dropped it, and ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from daskdl.stream.queues.protocols import Sink, Source
from daskdl.stream.queues.records import Partition
from daskdl.stream.worker.inference import Inference
from daskdl.stream.worker.latency import Histogram


@dataclass(frozen=True)
class Limits:
    """Sizes and times of a stream.

    Parameters
    ----------
    batch : int
        Largest number of records of a batch.
    batch_seconds : float
        Seconds that a batch should take.
    under_way : int
        Batches that may wait for the sink; then no more are read.
    lease : float
        Seconds without orders after which a session ends.
    """

    batch: int = 1024
    batch_seconds: float = 0.05
    under_way: int = 2
    lease: float = 5.0


class Work(NamedTuple):
    """The work of all sessions of one run of a stream."""

    run: str
    source: Source
    sink: Sink
    inference: Inference
    limits: Limits


@dataclass(frozen=True)
class Spec:
    """The assignment with which a session begins."""

    work: Work
    #: Of the session, in the order in which they began: its generation.
    number: int
    #: The sink's writer that it is.
    slot: int
    #: Of the worker.
    address: str


@dataclass(frozen=True)
class Orders:
    """Orders for a session from now on."""

    #: Grows whenever partitions or ``stop`` are others than before.
    number: int
    #: That it reads, and no others.
    partitions: tuple[Partition, ...]
    #: sha256 of the model that it uses once it has it.
    model: str
    #: Whether it finishes its current work and ends, and the seconds that it has for that.
    stop: bool = False
    within: float = 30.0

    def message(self) -> dict[str, Any]:
        """Return plain data for sending."""
        return {**self.__dict__, "partitions": [tuple(p) for p in self.partitions]}

    @classmethod
    def of(cls, message: Mapping[str, Any]) -> Orders:
        """Undo :meth:`message`."""
        partitions = tuple(Partition(*p) for p in message["partitions"])
        return cls(**{**message, "partitions": partitions})


@dataclass
class Report:
    """The report of a session; counts are those since its beginning."""

    #: "starting", "working", "stopped", "aborted", "fenced" or "expired"; aborted is one that could
    #: not commit what was under way when it was to stop.
    state: str = "starting"
    #: Number of the orders that it follows.
    applied: int = 0
    #: sha256 of the model at work, of all that it has, and of those it cannot use, with why.
    model: str = ""
    models: list[str] = field(default_factory=list)
    rejected: dict[str, str] = field(default_factory=dict)
    #: Records committed; answers and dead letters among their outputs.
    records: int = 0
    answers: int = 0
    dead: int = 0
    #: Times that it had to read again; offsets that the broker had not any more; the last error.
    errors: int = 0
    missing: int = 0
    error: str = ""
    #: Sum of all latencies, and :meth:`daskdl.stream.worker.latency.Histogram.sparse` of them.
    milliseconds: float = 0.0
    latencies: list[tuple[int, int]] = field(default_factory=list)
    #: (topic, partition, offset, at its end) of each partition.
    positions: list[tuple[str, int, int, bool]] = field(default_factory=list)
    #: Whether it has read and committed all its partitions to their ends.
    ended: bool = False

    def histogram(self) -> Histogram:
        """Return the latencies."""
        return Histogram(self.latencies)
