"""Host: the worker plugin that connects the driver with the sessions on a worker."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from distributed import WorkerPlugin, get_worker

from daskdl.cluster.failures import TaskError
from daskdl.stream.worker.metrics import served_by_dask
from daskdl.stream.worker.model_file import ModelFile, ServedModel
from daskdl.stream.worker.orders import Orders, Report, Spec
from daskdl.stream.worker.session import Session

if TYPE_CHECKING:
    from distributed import Worker

#: Seconds in which sessions end before their worker closes; a nanny waits for it for 4 s.
LEAVE = 2.5


class Host(WorkerPlugin):
    """Holds the sessions of a worker, and passes them orders and models.

    The driver uses the worker's own address and the cluster's protocol (TCP, TLS): no port is
    opened.
    """

    name = "daskdl-stream"
    #: A stream that begins must not take the place of what others speak to.
    idempotent = True

    def setup(self, worker: Worker) -> None:
        """Start on a worker."""
        self.sessions: dict[tuple[str, int], Session] = {}
        self._withdraw = served_by_dask(self._reports)
        self._threads = max(1, worker.state.nthreads)
        worker.handlers["daskdl_stream"] = self.ask
        worker.handlers["daskdl_stream_model"] = self.model
        worker.handlers["daskdl_stream_end"] = self.end

    async def teardown(self, worker: Worker) -> None:
        """Wait until the driver has ended the sessions, which commit what they have answered."""
        limit = time.monotonic() + LEAVE
        while self.sessions and time.monotonic() < limit:
            await asyncio.sleep(0.02)
        self._withdraw()

    def _reports(self) -> list[tuple[str, Report]]:
        return [(s.spec.work.source.group, Report(**s.report())) for s in [*self.sessions.values()]]

    def ask(self, run: str, number: int, orders: Mapping[str, Any]) -> dict[str, Any]:
        """Pass orders to a session; return its report, empty if it has not begun."""
        session = self.sessions.get((run, number))
        if session is None:
            return {}
        session.order(Orders.of(orders))
        return session.report()

    async def model(self, run: str, number: int, name: str, data: bytes) -> str:
        """Load a model for a session during its work; return why that failed, else empty."""
        session = self.sessions.get((run, number))
        if session is None:
            return "the session has ended"
        file = ModelFile(name, bytes(data))

        def load() -> ServedModel:
            model = ServedModel(file, self._threads)
            sample = session.sample
            if sample is not None or model.takes_texts:
                model.try_on("a text" if sample is None else sample)
            return model

        try:
            session.offer(await asyncio.to_thread(load))
        except Exception as error:
            session.reject(file.sha256, str(error))
            return str(error)
        return ""

    def end(self, group: str, run: str) -> int:
        """End sessions of other runs of a group; return how many remain."""
        others = [
            session
            for (of, _), session in self.sessions.items()
            if of != run and session.spec.work.source.group == group
        ]
        for session in others:
            session.end()
        return len(others)


def run_session(spec: Spec) -> dict[str, Any]:
    """Run a session to its end: the task of a worker; return its last report."""
    worker = get_worker()
    if worker.address != spec.address:
        return {}  # its worker was lost, and it has no business here
    host: Host = worker.plugins[Host.name]
    session = Session(spec)
    host.sessions[spec.work.run, spec.number] = session
    try:
        return session.run()
    except Exception as error:
        raise TaskError(f"stream at worker {spec.address}", error) from error
    finally:
        host.sessions.pop((spec.work.run, spec.number), None)
