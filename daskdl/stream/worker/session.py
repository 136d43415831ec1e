"""Session: a task on a worker that reads partitions, asks the model, writes and commits.

Two threads: one reads and predicts, the other writes and commits, so that the model works while a
transaction is under way. Between them is a short queue; when the sink is slow it is full, and less
is read.
"""

from __future__ import annotations

import logging
import math
import queue
import threading
import time
from collections.abc import Mapping
from contextlib import closing, suppress
from typing import Any, NamedTuple

import numpy as np

from daskdl.stream.queues.protocols import FencedError, Reader, RolledBackError, Writer
from daskdl.stream.queues.records import Output, Partition
from daskdl.stream.worker.latency import BatchLimit, Histogram
from daskdl.stream.worker.model_file import ServedModel
from daskdl.stream.worker.orders import Orders, Report, Spec

logger = logging.getLogger(__name__)

#: Seconds that a poll waits for a record, and so the longest until orders are followed.
WAIT = 0.05
#: Seconds until failed work is tried again.
AGAIN = 0.2
#: Seconds until the same error is logged again.
LOG_AGAIN = 30.0
#: Seconds in which given-up work has to end, before it is abandoned.
ABANDON = 6.0
#: The part of a stop's time after which current work is given up, so that the stop is in time.
FINISHING = 0.6
#: Models kept besides the one at work and the newest, for orders that are taken back.
SPARE = 1


class Batch(NamedTuple):
    """Outputs of a batch, and the offsets to commit with them."""

    outputs: list[Output]
    dead: int
    positions: Mapping[Partition, int]


class Session:
    """One life of a stream on one worker."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self._orders: Orders | None = None
        self._asked = time.monotonic()
        self._expired = self._must_end = self._over = False
        self._stop_by = math.inf
        self._models: dict[str, ServedModel] = {}
        self._report, self._latencies = Report(), Histogram()
        self._reader: Reader | None = None
        self._batches: queue.Queue[Batch] = queue.Queue(max(1, spec.work.limits.under_way))
        self._trouble: Exception | None = None
        self._queued: dict[Partition, int] = {}  # positions that are committed or will be
        self._limit = BatchLimit(spec.work.limits.batch, spec.work.limits.batch_seconds)
        self._logged = "", -math.inf  # the error that was logged last, and when it is again
        #: A message as the model gets it, for a trial of the next one.
        self.sample: Any = None

    # --- what the driver says and hears, in the worker's event loop

    def order(self, orders: Orders) -> None:
        """Take orders, unless they come too late."""
        now = time.monotonic()
        if now - self._asked > self.spec.work.limits.lease:
            self._expired = True  # the driver may have given its partitions to others
        if self._orders is None or orders.number >= self._orders.number:
            self._asked, self._orders = now, orders
            latest = now + FINISHING * orders.within
            self._stop_by = min(self._stop_by, latest) if orders.stop else math.inf

    def end(self) -> None:
        """Finish the current work and end, whatever the driver says."""
        self._must_end = True

    def offer(self, model: ServedModel) -> None:
        """Take a model for use when orders name it, between two batches."""
        self._models.pop(model.sha256, None)
        for old in [sha for sha in self._models if sha != self._report.model][: -SPARE or None]:
            del self._models[old]
        self._models[model.sha256] = model
        self._report.models = list(self._models)

    def reject(self, sha256: str, why: str) -> None:
        """Note that a model cannot be used."""
        self._report.rejected[sha256] = why

    def report(self) -> dict[str, Any]:
        """Return a :class:`~daskdl.stream.worker.orders.Report` as plain data."""
        report, reader = self._report, self._reader
        report.latencies = self._latencies.sparse()
        report.milliseconds = self._latencies.total
        if reader is not None:
            with suppress(Exception):  # of a reader that is being closed
                positions, at_end = reader.positions(), reader.at_end()
                report.positions = [(*p, n, p in at_end) for p, n in positions.items()]
                report.missing = int(getattr(reader, "missing", 0))
                quiet = not self._batches.unfinished_tasks and self._trouble is None
                report.ended = quiet and positions == self._queued and at_end >= set(positions)
        return dict(report.__dict__)

    # --- the task's thread

    def run(self) -> dict[str, Any]:
        """Work until told to stop, and return the last report."""
        while self._orders is None:
            if self._given_up():
                return self._ended("expired")
            time.sleep(0.01)
        work = self.spec.work
        try:
            with (
                closing(work.source.reader(work.run)) as reader,
                closing(work.sink.writer(self.spec.slot)) as writer,
            ):
                return self._work(reader, writer)
        except FencedError as error:
            self._report.error = str(error)
            return self._ended("fenced")

    def _work(self, reader: Reader, writer: Writer) -> dict[str, Any]:
        self._reader = reader
        committing = threading.Thread(
            target=self._commit_all, args=(reader, writer), name="daskdl-stream-commit", daemon=True
        )
        committing.start()
        self._report.state = "working"
        try:
            while True:
                orders = self._orders
                assert orders is not None
                if self._given_up():
                    return self._given_up_as()
                stopping = orders.stop or self._must_end
                if self._trouble is not None:
                    self._recover(reader, stopping)
                    if stopping and self._trouble is None:
                        return self._ended("stopped")
                elif stopping:
                    if self._drain() and self._trouble is None:
                        return self._ended("stopped")
                elif orders.number != self._report.applied:
                    if self._drain() and self._trouble is None:
                        self._trying(self._follow, reader, orders)
                else:
                    self._trying(self._batch, reader, orders)
        finally:
            # What is under way is not waited for: after a stop nothing is.
            self._trouble = self._trouble or RolledBackError("the session has ended")
            self._over = True
            writer.give_up()
            committing.join(ABANDON)
            if committing.is_alive():
                logger.warning("session %d leaves a call of its sink behind", self.spec.number)
            self._reader = None

    def _given_up_as(self) -> dict[str, Any]:
        """Return the last report of a session that abandons its current work."""
        if self._expired:
            self._trouble = RolledBackError("the driver has not been heard of")
            return self._ended("expired")
        error = self._trouble or RolledBackError("the sink has not answered in time")
        self._trouble, self._report.error = error, f"{type(error).__name__}: {error}"
        return self._ended("aborted")

    def _drain(self) -> bool:
        """Wait until all batches are committed or have failed; return whether they are."""
        with self._batches.all_tasks_done:
            while self._batches.unfinished_tasks:
                if self._given_up():
                    return False
                self._batches.all_tasks_done.wait(WAIT)
        return True

    def _ended(self, state: str) -> dict[str, Any]:
        self._report.state = state
        return self.report()

    def _given_up(self) -> bool:
        """Return whether the driver is gone, or the time to finish is over."""
        now = time.monotonic()
        self._expired = self._expired or now - self._asked > self.spec.work.limits.lease
        return self._expired or now > self._stop_by

    def _trying(self, step: Any, reader: Reader, orders: Orders) -> None:
        try:
            step(reader, orders)
        except Exception as error:  # of a broker that is away, for example
            self._trouble = error

    def _follow(self, reader: Reader, orders: Orders) -> None:
        reader.assign(orders.partitions)
        self._queued = reader.positions()
        self._report.applied = orders.number

    def _batch(self, reader: Reader, orders: Orders) -> None:
        model = self._models.get(orders.model) or self._models.get(self._report.model)
        if model is None or not orders.partitions:
            time.sleep(0.01)
            return
        self._report.model = model.sha256
        records = reader.poll(self._limit.limit, WAIT)
        positions = {p: n for p, n in reader.positions().items() if self._queued.get(p) != n}
        if not positions:
            return
        began = time.perf_counter()
        outputs, dead = self.spec.work.inference(model, records)
        self._limit.worked(len(records), time.perf_counter() - began)
        if records and self.sample is None and records[-1].value is not None:
            with suppress(Exception):
                self.sample = self.spec.work.inference.decode(records[-1].value)
        self._put(Batch(outputs, dead, positions))

    def _put(self, batch: Batch) -> None:
        while self._trouble is None and not self._given_up():
            with suppress(queue.Full):
                self._batches.put(batch, timeout=0.1)
                self._queued.update(batch.positions)
                return

    def _recover(self, reader: Reader, stopping: bool) -> None:
        """Read again from the last commit, when it was another's fault and there is to be more."""
        if not self._drain():
            return
        error = self._trouble
        if isinstance(error, FencedError):
            raise error
        self._report.errors += 1
        self._report.error = f"{type(error).__name__}: {error}"
        now = time.monotonic()
        if self._report.error != self._logged[0] or now > self._logged[1]:
            self._logged = self._report.error, now + LOG_AGAIN
            logger.warning("session %d reads again, since %s", self.spec.number, self._report.error)
        if stopping:  # nothing of it counts, and the next run reads it
            self._trouble = None
            return
        time.sleep(AGAIN)
        try:
            reader.rewind()
            self._queued = reader.positions()
            self._trouble = None
        except Exception as again:
            self._trouble = again

    # --- the thread that commits

    def _commit_all(self, reader: Reader, writer: Writer) -> None:
        while not self._over:
            batches: list[Batch] = []
            with suppress(queue.Empty):
                batches.append(self._batches.get(timeout=WAIT))
                while True:
                    batches.append(self._batches.get_nowait())
            if not batches:
                continue
            try:
                self._commit(reader, writer, batches)
            except Exception as error:
                self._trouble = error
            finally:
                for _ in batches:
                    self._batches.task_done()

    def _commit(self, reader: Reader, writer: Writer, batches: list[Batch]) -> None:
        positions: dict[Partition, int] = {}
        for batch in batches:
            if self._trouble is not None or self._given_up():
                return
            writer.write(batch.outputs)
            positions.update(batch.positions)
        writer.commit(reader, positions)
        now = time.time() * 1000
        outputs = [output for batch in batches for output in batch.outputs]
        stamps = np.array([o.record.timestamp for o in outputs if o.record.timestamp > 0])
        self._latencies.add(now - stamps)
        dead = sum(batch.dead for batch in batches)
        self._report.records += len(outputs)
        self._report.answers += len(outputs) - dead
        self._report.dead += dead
