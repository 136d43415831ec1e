"""The command ``daskdl bench scaling``: from settings to table, picture and file."""

from __future__ import annotations

from contextlib import AbstractContextManager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from daskdl.cluster.doctor import diagnosis
from daskdl.collective.codec import check_wire
from daskdl.errors import SettingsError
from daskdl.scaling import workloads
from daskdl.scaling.measure import Row, Run, counts, measured, planned, sweep
from daskdl.scaling.processes import check_memory, real, waiting
from daskdl.scaling.report import (
    HEADER,
    check_format,
    check_place,
    draw,
    line,
    telling,
    write,
    write_json,
)
from daskdl.scaling.workloads import Workload, workload
from daskdl.train.engines.choice import check_engine

if TYPE_CHECKING:
    from distributed import Client


def run(
    settings: Settings, json: Path | None = None, plot: Path | None = None, progress: bool = False
) -> list[Row]:
    """Measure, print each row as soon as it is known, write the files, and return the rows.

    Settings and packages are checked before the first measurement. Raises ClusterError when the
    cluster cannot be reached, or its workers do not arrive.
    """
    check_engine(settings.engine)
    check_wire(settings.wire)
    check_place("json", json)
    check_place("plot", plot)
    if plot is not None:
        check_format(plot)
    work = settings.workload()
    there: AbstractContextManager[Any] = (
        waiting(settings.workers)
        if settings.waits
        else real(settings.cluster, settings.workers, settings.threads)
    )
    with there as (client_of, most):
        if settings.first > most:
            raise SettingsError(
                f"first: expected at most {most} workers, found {settings.first}"
                "; start more workers, or lower --first"
            )
        if settings.waits:
            check_memory(most, settings.numbers())
        total = settings.total_batch or settings.first * work.batch
        plan = planned(counts(settings.first, most), work.batch, total)
        runs = list(dict.fromkeys((workers, samples) for _, workers, samples in plan))

        def measure(workers: int, samples: int) -> Run:
            at = runs.index((workers, samples)) + 1
            text = f"run {at} of {len(runs)}: {workers} workers, {samples} samples an iteration"
            with telling(text, progress):
                client = client_of(workers)
                how = {"engine": settings.engine, "wire": settings.wire}
                repeats = [
                    measured(client, work, workers, samples, settings.seconds, **how)
                    for _ in range(settings.repeat)
                ]
            return min(repeats, key=lambda run: run.seconds)

        print(f"{subject(settings)}\n{HEADER}", flush=True)
        rows = []
        for row in sweep(measure, plan):
            rows.append(row)
            print(line(row), flush=True)
        facts = machines(client_of(most))
    if json is not None:
        content = {
            "settings": asdict(settings),
            "workload": subject(settings),
            "megabytes": 4e-6 * settings.numbers(),
            "machines": facts,
        }
        write_json(json, content, rows)
    if plot is not None:
        write(draw(rows, title(settings, facts)), plot)
    return rows


def title(settings: Settings, facts: list[dict[str, Any]]) -> str:
    """Return the title of the picture: the workload or simulation, and the processors."""
    kinds = ", ".join(f"{one['hosts']} x {one['processor']}" for one in facts)
    return f"{subject(settings)}: {kinds}"


def subject(settings: Settings) -> str:
    """Return the subject of a measurement: a model, or a gradient's size and the waiting time."""
    if settings.simulate is None:
        return settings.model
    megabytes = 4e-6 * settings.numbers()
    return f"a gradient of {megabytes:.3g} MB, {settings.simulate:g} s of waiting"


@dataclass(frozen=True)
class Settings:
    """Settings of a benchmark; the help of the command line explains the options.

    By default the largest number of workers is the cluster's. ``total_batch``, the samples of all
    workers in strong scaling, is by default the batch of the fewest workers in weak scaling. With
    ``simulate`` workers wait this many seconds per batch in place of computing; with "local" many
    of them share a process. ``megabytes`` is then the size of the weights, by default the model's.
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
        """Whether workers are simulated on this machine."""
        return self.simulate is not None and self.cluster == "local"

    def workload(self) -> Workload:
        """Return the workload: the model, or a simulation of its size."""
        chosen = workload(self.model)
        chosen = replace(chosen, batch=self.batch_size or chosen.batch)
        if self.simulate is None:
            if self.megabytes is not None:
                raise SettingsError(
                    f"megabytes: expected only with --simulate, found {self.megabytes:g}; leave "
                    "it out, since a model has a size of its own"
                )
            return chosen
        return workloads.waiting(chosen, self.simulate, self.numbers())

    def numbers(self) -> int:
        """Return the number of weights, without tables trained by rows."""
        if self.megabytes is not None:
            return int(self.megabytes * 250_000)
        model, _, _ = workload(self.model).build()
        return int(model.vector.size)


#: Parts of a diagnosis that are reported.
REPORTED = ("python", "packages", "cores")


def machine() -> dict[str, Any]:
    """Return processor, cores, memory and versions of this machine, as plain data."""
    import psutil

    facts = diagnosis()
    libraries = (text.partition(",")[0] for text in facts["libraries"].values())
    return {
        "processor": processor(),
        "memory (GB)": round(psutil.virtual_memory().total / 1e9),
        **{name: facts[name] for name in REPORTED},
        "libraries": sorted({name for name in libraries if not name.startswith("openmp")}),
    }


def machines(client: Client) -> list[dict[str, Any]]:
    """Return :func:`machine` of each kind of host in a cluster, with counts.

    Each has the number of equal ``hosts`` and of their ``workers``.
    """
    from distributed.comm.addressing import get_address_host

    workers: dict[str, list[str]] = {}
    for address in sorted(client.nthreads()):
        workers.setdefault(get_address_host(address), []).append(address)
    asked = client.run(machine, workers=[addresses[0] for addresses in workers.values()])
    kinds: list[dict[str, Any]] = []
    for addresses in workers.values():
        facts = asked[addresses[0]]
        kind = next((one for one in kinds if facts.items() <= one.items()), None)
        if kind is None:
            kind = {"hosts": 0, "workers": 0, **facts}
            kinds.append(kind)
        kind["hosts"] += 1
        kind["workers"] += len(addresses)
    return kinds


def processor() -> str:
    """Return the processor's name, with its family and model.

    In virtual machines several generations may have the same name.
    """
    import platform

    entries: dict[str, str] = {}
    with suppress(OSError):
        for entry in Path("/proc/cpuinfo").read_text().splitlines():
            name, _, value = entry.partition(":")
            entries.setdefault(name.strip(), value.strip())
    name = entries.get("model name") or platform.processor() or platform.machine()
    if "cpu family" not in entries:
        return name
    return f"{name} (family {entries['cpu family']}, model {entries.get('model', '?')})"
