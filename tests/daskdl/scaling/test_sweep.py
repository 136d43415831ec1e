"""Runs on more and more workers."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial

import pytest

from daskdl.scaling.measure import LEAST, measured
from daskdl.scaling.split import PARTS
from daskdl.scaling.sweep import planned, sweep
from tests.daskdl.scaling.tiny import TINY, draw, run


def test_weak_and_strong_rows_share_the_run_they_are_compared_with() -> None:
    measured = []

    def measure(workers, samples):
        measured.append((workers, samples))
        return run(workers, samples, 0.1 + samples / workers)

    rows = list(sweep(measure, planned([1, 2, 4], 8, 8)))
    assert measured == [(1, 8), (2, 16), (2, 8), (4, 32), (4, 8)]
    assert [(row.scaling, row.run.workers) for row in rows] == [
        (kind, n) for n in (1, 2, 4) for kind in ("weak", "strong")
    ]
    assert [row.efficiency for row in rows if row.scaling == "weak"] == [1, 1, 1]
    strong = [row.efficiency for row in rows if row.scaling == "strong"]
    assert strong == pytest.approx([1, 8.1 / 8.2, 8.1 / 8.4])


def test_workers_without_samples_are_not_measured() -> None:
    assert planned([1, 4], 2, 3) == [("weak", 1, 2), ("strong", 1, 3), ("weak", 4, 8)]


def test_a_row_comes_as_soon_as_it_is_measured() -> None:
    measured = []

    def measure(workers, samples):
        measured.append(workers)
        return run(workers, samples, 1.0)

    next(sweep(measure, planned([1, 2], 4, 4)))
    assert measured == [1]


@pytest.mark.slow
def test_two_processes_are_measured_and_the_parts_add_up(client) -> None:
    found = measured(client, TINY, 2, 8, 0.05)
    assert (found.workers, found.batch) == (2, 8)
    assert found.iterations >= LEAST
    assert found.rate == pytest.approx(8 / found.seconds)
    assert tuple(found.parts) == PARTS
    assert min(found.parts.values()) >= 0
    assert sum(found.parts.values()) == pytest.approx(found.seconds)
    for part in ("data", "forward", "backward", "reduce", "update"):
        assert found.parts[part] > 0, part
    assert found.busy is not None
    assert found.busy >= 0  # of a few ticks of the clock


def leaving_a_mark(folder, rng, n):
    (folder / str(os.getpid())).touch()
    return draw(rng, n)


@pytest.mark.parametrize("workers", [1, 2])
def test_as_many_workers_take_part_as_are_asked_for(workers, client, tmp_path) -> None:
    marked = replace(TINY, draw=partial(leaving_a_mark, tmp_path))
    measured(client, marked, workers, 4, 0.0)
    there = {int(path.name) for path in tmp_path.iterdir()} - {os.getpid()}
    assert len(there) == workers
    assert there <= set(client.run(os.getpid).values())
