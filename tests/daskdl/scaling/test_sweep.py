from __future__ import annotations

import pytest

from daskdl.scaling.sweep import planned, sweep
from tests.daskdl.scaling.tiny import run


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
