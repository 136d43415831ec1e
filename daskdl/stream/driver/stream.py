"""Stream: a model over arriving records, on the workers of a Dask cluster."""

from __future__ import annotations

import logging
import os
import queue
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from daskdl.cluster.client import Cluster
from daskdl.errors import ClusterError, SettingsError
from daskdl.stream.driver.partitions import PartitionWatch
from daskdl.stream.driver.sessions import Sessions
from daskdl.stream.driver.status import Status
from daskdl.stream.queues.protocols import Sink, Source
from daskdl.stream.worker.host import Host
from daskdl.stream.worker.inference import Inference
from daskdl.stream.worker.messages import Decode, Routes, schema
from daskdl.stream.worker.model_file import ModelFile, ServedModel
from daskdl.stream.worker.orders import Limits, Work

if TYPE_CHECKING:
    from distributed import Client

logger = logging.getLogger(__name__)

#: Seconds between two questions to each worker.
TICK = 0.1


class Stream:
    """Answers records of a source with a model, on workers that may come and go.

    Parameters
    ----------
    source : Source
        For instance a :class:`~daskdl.stream.KafkaSource`.
    sink : Sink
        For instance a :class:`~daskdl.stream.KafkaSink`.
    model : path, URL or ModelFile
        A file that ``daskdl.save`` wrote.
    routes : Routes
        Topics of answers and dead letters.
    schema : str or callable, optional
        From a message's bytes to the model's input, see
        :func:`daskdl.stream.worker.messages.schema`; by default ``text`` or ``numbers``, by the
        model.
    echo : bool
        Whether answers contain the message.
    limits : Limits, optional
    silence : float
        Seconds without an answer after which a worker counts as lost.
    stop_within : float
        Seconds for workers to finish their batches when the stream is stopped.

    Raises
    ------
    ModelFileError
        When the model cannot be loaded, or cannot be applied to a text.

    Examples
    --------
    >>> from pathlib import Path
    >>> import daskdl
    >>> from daskdl.stream import DirectorySink, DirectorySource
    >>> _ = Path("in").mkdir(), Path("in/a.jsonl").write_text("[1, 2, 3]")
    >>> model = daskdl.nn.Sequential(daskdl.nn.Linear(3, 2), daskdl.nn.Softmax())
    >>> daskdl.save(model, "model.safetensors")
    >>> routes = Routes("answers", "bad")
    >>> stream = Stream(DirectorySource("in"), DirectorySink("out"), "model.safetensors", routes)
    >>> stream.model.name, stream.routes.topics()
    ('model', ['answers', 'bad'])
    """

    def __init__(
        self,
        source: Source,
        sink: Sink,
        model: str | os.PathLike[str] | ModelFile,
        routes: Routes,
        *,
        schema: str | Decode | None = None,
        echo: bool = False,
        limits: Limits | None = None,
        silence: float = 6.0,
        stop_within: float = 30.0,
    ) -> None:
        self.source, self.sink, self.routes = source, sink, routes
        self.model = model if isinstance(model, ModelFile) else ModelFile.read(model)
        served = self._checked(self.model)
        self.inference = Inference(_schema(schema, served), routes, echo)
        if not silence > 1:
            raise SettingsError(f"silence: expected more than 1 s, found {silence!r}")
        # A worker that is given up has given up itself before.
        limits = limits or Limits()
        self.limits = replace(limits, lease=min(limits.lease, 0.8 * silence))
        self.silence, self.stop_within = silence, stop_within
        # Of two runs the later one has the group.
        self._run = f"{time.time_ns() // 1_000_000:012x}.{uuid.uuid4().hex[:8]}"
        self._stopping = threading.Event()
        self._swaps: queue.SimpleQueue[ModelFile] = queue.SimpleQueue()
        self.status = Status(self.model)

    # --- calls from other threads

    def stop(self) -> None:
        """Finish and commit the batches, and end."""
        self._stopping.set()

    def swap(self, model: str | os.PathLike[str] | ModelFile, name: str | None = None) -> str:
        """Use another model from the next batches on; return its sha256.

        Raises
        ------
        ModelFileError
            When it cannot be loaded; the old one stays.
        """
        file = model if isinstance(model, ModelFile) else ModelFile.read(model, name)
        self._checked(file)
        self._swaps.put(file)
        return file.sha256

    def _checked(self, file: ModelFile) -> ServedModel:
        served = ServedModel(file)
        if served.takes_texts:
            served.try_on("a text")
        return served

    # --- the driver

    def run(
        self,
        client: Client,
        *,
        until_end: bool = False,
        seconds: float | None = None,
        watch: Callable[[Stream], None] | None = None,
    ) -> Status:
        """Run until :meth:`stop` is called; return the status.

        Parameters
        ----------
        client : distributed.Client
            One task runs on each worker as long as the stream.
        until_end : bool
            Stop when all partitions have been read to their ends.
        seconds : float, optional
            Stop after so many seconds.
        watch : callable, optional
            Called with this stream several times a second.

        Raises
        ------
        ClusterError
            When another driver has taken over the group, there is no worker for
            ``daskdl.no-workers-timeout``, or a broker does not answer at the start.
        """
        name = f"stream {self.source.group}"
        cluster = Cluster(client)
        cluster.install(Host(), name)
        self._end_others(cluster)
        partitions = self.source.partitions()
        self.sink.check(partitions, self.routes.topics())
        with ExitStack() as stack:
            watched = PartitionWatch(self.source, partitions)
            stack.callback(watched.close)
            work = Work(self._run, self.source, self.sink, self.inference, self.limits)
            sessions = Sessions(cluster, name, work, self.silence, self.model)
            stack.callback(sessions.close)
            sessions.fence_all(len(partitions))
            self.source.claim(self._run)
            began = self.status.began = time.monotonic()
            while not self._stopping.is_set():
                now = time.monotonic()
                partitions, self.status.ends = watched.at(now)
                if watched.owner not in (None, self._run):
                    raise ClusterError(
                        f"{name}: expected to be the only driver of the group, found that run "
                        f"{watched.owner} has taken it over; stop one of the two, or give it "
                        "another group"
                    )
                while not self._swaps.empty():
                    sessions.use(self._swaps.get())
                sessions.look(partitions)
                self.status.take(sessions)
                if watch is not None:
                    watch(self)
                if (seconds is not None and now - began > seconds) or (
                    until_end and sessions.ended(partitions)
                ):
                    break
                self._stopping.wait(TICK)
            sessions.stop(self.stop_within)
            self.status.take(sessions)
        return self.status

    def _end_others(self, cluster: Cluster) -> None:
        """End sessions of an earlier run of the group whose driver was lost."""
        limit = time.monotonic() + self.limits.lease + 5
        message = {"op": "daskdl_stream_end", "group": self.source.group, "run": self._run}
        while any(isinstance(n, int) and n for n in cluster.tell(message).values()):
            if time.monotonic() > limit:
                logger.warning("sessions of an earlier run of %s go on", self.source.group)
                return
            time.sleep(0.1)


def _schema(spec: str | Decode | None, model: ServedModel) -> Decode:
    return schema(spec or ("text" if model.takes_texts else "numbers"))
