"""Command: ``daskdl bench scaling``, from settings to table, picture and file."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from daskdl.collective.codec import check_wire
from daskdl.errors import SettingsError
from daskdl.scaling.machine import machines
from daskdl.scaling.measure import Run, measured
from daskdl.scaling.processes import check_memory, real, waiting
from daskdl.scaling.report import HEADER, check_place, line, telling, write_json
from daskdl.scaling.settings import Settings
from daskdl.scaling.split import counts
from daskdl.scaling.sweep import Row, planned, sweep
from daskdl.train.engines.choice import check_engine


def run(
    settings: Settings, json: Path | None = None, plot: Path | None = None, progress: bool = False
) -> list[Row]:
    """Measure, print each row when it is known, write the files, and return the rows.

    Raises
    ------
    SettingsError, MissingExtraError
        Before anything is measured.
    ClusterError
        When the cluster cannot be reached, or its workers do not come.
    """
    check_engine(settings.engine)
    check_wire(settings.wire)
    check_place("json", json)
    check_place("plot", plot)
    if plot is not None:
        from daskdl.scaling.report import check_format

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
                found = [
                    measured(
                        client,
                        work,
                        workers,
                        samples,
                        settings.seconds,
                        engine=settings.engine,
                        wire=settings.wire,
                    )
                    for _ in range(settings.repeat)
                ]
            return min(found, key=lambda run: run.seconds)

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
        from daskdl.scaling.report import draw, write

        write(draw(rows, title(settings, facts)), plot)
    return rows


def title(settings: Settings, facts: list[dict[str, Any]]) -> str:
    """Return the title of the picture: workload, or what is simulated, and processors."""
    kinds = ", ".join(f"{one['hosts']} x {one['processor']}" for one in facts)
    return f"{subject(settings)}: {kinds}"


def subject(settings: Settings) -> str:
    """Return what is measured: a model, or the size of a gradient and how long is waited."""
    if settings.simulate is None:
        return settings.model
    megabytes = 4e-6 * settings.numbers()
    return f"a gradient of {megabytes:.3g} MB, {settings.simulate:g} s of waiting"
