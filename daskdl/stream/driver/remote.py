"""Remote sessions: the driver's view of sessions on workers, and when one counts as lost."""

from __future__ import annotations

import logging
import time
from concurrent.futures import Future as ConcurrentFuture
from contextlib import suppress
from typing import Any

from daskdl.cluster.client import Cluster
from daskdl.cluster.failures import TaskError
from daskdl.cluster.tasks import Place
from daskdl.compat.dask import Task
from daskdl.stream.queues.records import Partition
from daskdl.stream.worker.host import run_session
from daskdl.stream.worker.model_file import ModelFile
from daskdl.stream.worker.orders import Orders, Report, Spec

logger = logging.getLogger(__name__)

#: Seconds without an answer after which a worker that has left the cluster counts as closed.
GONE = 1.0


class RemoteSession:
    """One session on one worker; ``model`` is the sha256 of its first model."""

    def __init__(self, cluster: Cluster, spec: Spec, model: str) -> None:
        self.spec, self._cluster = spec, cluster
        self.orders = Orders(0, (), model)
        self.report: Report | None = None
        #: When it answered last; until it begins, its task may wait for others on its worker.
        self.heard = time.monotonic()
        self._answers = False  # when it was asked last
        self._asked: ConcurrentFuture[Any] | None = None
        self._sent: dict[str, ConcurrentFuture[Any]] = {}
        self._place = {"run": spec.work.run, "number": spec.number}
        key = f"stream-{spec.work.run}", spec.number, 0
        graph = {key: Task(key, run_session, spec)}
        (self._future,) = cluster.submit(graph, [key], Place([spec.address]))

    @property
    def begun(self) -> bool:
        """Whether it has reported."""
        return self.report is not None

    @property
    def follows(self) -> bool:
        """Whether it reads exactly the ordered partitions."""
        return self.report is not None and self.report.applied == self.orders.number

    def order(
        self, partitions: tuple[Partition, ...], model: str, stop: bool = False, within: float = 30
    ) -> None:
        """Change its orders."""
        same = self.orders.partitions == partitions and self.orders.stop == stop
        number = self.orders.number + (not same)
        self.orders = Orders(number, partitions, model, stop, within)

    def ask(self) -> None:
        """Read an answer that has come, and ask again."""
        if self._asked is not None:
            if not self._asked.done():
                return
            try:
                answer = self._asked.result()
            except Exception as error:  # of a worker that is not there any more
                logger.debug("session %d does not answer: %r", self.spec.number, error)
                self._answers = False
            else:
                self._answers = bool(answer)
                if answer:
                    self.report, self.heard = Report(**answer), time.monotonic()
                elif self.report is None:
                    self.heard = time.monotonic()
        message = {"op": "daskdl_stream", **self._place, "orders": self.orders.message()}
        self._asked = self._cluster.ask(self.spec.address, message)

    def send(self, file: ModelFile) -> None:
        """Send a model, unless it was sent or cannot be used there."""
        sent = self._sent.get(file.sha256)
        rejected = self.report.rejected if self.report is not None else {}
        if (sent is not None and not sent.done()) or file.sha256 in rejected:
            return
        message = {
            "op": "daskdl_stream_model", **self._place, "name": file.name, "data": file.data,
        }  # fmt: skip
        self._sent[file.sha256] = self._cluster.ask(self.spec.address, message)

    def over(self, there: set[str]) -> bool:
        """Return whether it has ended, and read its last report; ``there`` are all workers.

        A session whose worker has left works until the worker closes; its future tells nothing of
        it then, since Dask runs the task again elsewhere.
        """
        if self.spec.address not in there:
            return not self._answers or time.monotonic() - self.heard > GONE
        status = self._future.status
        if status == "finished":
            with suppress(Exception):
                (last,) = self._cluster.fetch([self._future])
                if last:
                    self.report = Report(**last)
        return status != "pending"

    def failure(self) -> BaseException | None:
        """Return the exception of its task, or None."""
        if self._future.status != "error":
            return None
        error = self._cluster.error(self._future)
        return error.args[1] if isinstance(error, TaskError) else error

    def why(self) -> str:
        """Return how its task ended."""
        if error := self.failure():
            return f"{type(error).__name__}: {error}"
        if self.report is not None and self.report.state not in ("starting", "working"):
            return f"{self.report.state} {self.report.error}".strip()
        return str(self._future.status)

    def close(self) -> None:
        """Release the task and pending requests."""
        for asked in [self._asked, *self._sent.values()]:
            if asked is not None:
                asked.cancel()
        self._future.cancel()
