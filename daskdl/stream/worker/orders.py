"""Orders and reports: what the driver wants of a session on a worker, and what that says of itself.

The driver asks every session several times a second, always with all that it wants. A session that
has not been asked for a while takes it that the driver is gone or has given it up, and ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

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
        Most records of a batch.
    batch_seconds : float
        That the model shall take for a batch.
    under_way : int
        Batches that may wait for the sink; with as many no more are read.
    lease : float
        Seconds without orders after which a session ends.
    """

    batch: int = 1024
    batch_seconds: float = 0.05
    under_way: int = 2
    lease: float = 5.0


@dataclass(frozen=True)
class Spec:
    """The assignment with which a session begins.

    Parameters
    ----------
    run : str
    number : int
        Of the session, in the order in which they began: its generation.
    slot : int
        The sink's writer that it is.
    address : str
        Of the worker.
    source, sink, inference, limits :
        Of the stream.
    """

    run: str
    number: int
    slot: int
    address: str
    source: Source
    sink: Sink
    inference: Inference
    limits: Limits


@dataclass(frozen=True)
class Orders:
    """Orders for a session from now on.

    Parameters
    ----------
    number : int
        Grows whenever partitions or ``stop`` are others than before.
    partitions : tuple of Partition
        That it reads, and no others.
    model : str
        sha256 of the model that it uses once it has it.
    stop : bool
        Whether it finishes what is under way and ends.
    within : float
        Seconds that it has for that.
    """

    number: int
    partitions: tuple[Partition, ...]
    model: str
    stop: bool = False
    within: float = 30.0

    def message(self) -> dict[str, Any]:
        """Return plain data for sending."""
        return {**self.__dict__, "partitions": [tuple(p) for p in self.partitions]}

    @classmethod
    def of(cls, message: Mapping[str, Any]) -> Orders:
        """Return the orders of which :meth:`message` made plain data."""
        partitions = tuple(Partition(*p) for p in message["partitions"])
        return cls(**{**message, "partitions": partitions})


@dataclass
class Report:
    """The report of a session; counts are those since its beginning.

    Attributes
    ----------
    state : "starting", "working", "stopped", "aborted", "fenced" or "expired"
        Aborted is one that could not commit what was under way when it was to stop.
    applied : int
        Number of the orders that it follows.
    model : str
        sha256 of the model at work.
    models : list of str
        sha256 of all that it has.
    rejected : dict of str to str
        Models that it cannot use, and why.
    records, answers, dead, errors, missing : int
        Records committed; answers and dead letters among their outputs; times that it had to read
        again; offsets that the broker had not any more.
    error : str
        The last error.
    milliseconds : float
        Sum of all latencies.
    latencies : list of (int, int)
        See :meth:`daskdl.stream.worker.latency.Histogram.sparse`.
    positions : list of (topic, partition, offset, at its end)
    ended : bool
        Whether it has read and committed all its partitions to their ends.
    """

    state: str = "starting"
    applied: int = 0
    model: str = ""
    models: list[str] = field(default_factory=list)
    rejected: dict[str, str] = field(default_factory=dict)
    records: int = 0
    answers: int = 0
    dead: int = 0
    errors: int = 0
    missing: int = 0
    error: str = ""
    milliseconds: float = 0.0
    latencies: list[tuple[int, int]] = field(default_factory=list)
    positions: list[tuple[str, int, int, bool]] = field(default_factory=list)
    ended: bool = False

    def histogram(self) -> Histogram:
        """Return the latencies."""
        return Histogram(self.latencies)
