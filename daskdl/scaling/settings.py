"""Settings of ``daskdl bench scaling``, and the workload that they ask for."""

from __future__ import annotations

from dataclasses import dataclass, replace

from daskdl.errors import SettingsError
from daskdl.scaling.workloads import Workload, workload


@dataclass(frozen=True)
class Settings:
    """Settings of a benchmark: workload, sizes and numbers of workers.

    Attributes
    ----------
    model : str
        One of :data:`~daskdl.scaling.workloads.WORKLOADS`.
    cluster : str
        As :func:`daskdl.cluster.connect` takes it.
    workers : int, optional
        The most; by default as many as there are.
    first : int
        The fewest; each number is twice the one before.
    threads : int
        Of each worker of "local".
    batch_size : int, optional
        Samples of each worker in weak scaling.
    total_batch : int, optional
        Samples of all workers in strong scaling; by default as many as the fewest workers have in
        weak scaling.
    seconds : float
        That the iterations of a run last together, about.
    repeat : int
        Runs of the same, of which the quickest counts.
    engine, wire : str
        As in :meth:`daskdl.train.Trainer.fit`.
    simulate : float, optional
        Seconds to wait in place of computing with a worker's batch; with "local" many workers are
        then in one process.
    megabytes : float, optional
        Of the weights of a simulated model; by default the model's.
    """

    model: str
    cluster: str = "local"
    workers: int | None = None
    first: int = 1
    threads: int = 1
    batch_size: int | None = None
    total_batch: int | None = None
    seconds: float = 10.0
    repeat: int = 1
    engine: str = "auto"
    wire: str = "float32"
    simulate: float | None = None
    megabytes: float | None = None

    @property
    def waits(self) -> bool:
        """Whether workers of this machine only wait."""
        return self.simulate is not None and self.cluster == "local"

    def workload(self) -> Workload:
        """Return the workload: the model, or one of its size that waits.

        Raises
        ------
        SettingsError
        """
        found = workload(self.model)
        found = replace(found, batch=self.batch_size or found.batch)
        if self.simulate is None:
            if self.megabytes is not None:
                raise SettingsError(
                    f"megabytes: expected only with --simulate, found {self.megabytes:g}; leave "
                    "it out, since a model has a size of its own"
                )
            return found
        from daskdl.scaling.workloads import waiting

        return waiting(found, self.simulate, self.numbers())

    def numbers(self) -> int:
        """Return the number of weights, without tables that are trained by rows."""
        if self.megabytes is not None:
            return int(self.megabytes * 250_000)
        model, _, _ = workload(self.model).build()
        return int(model.vector.size)
