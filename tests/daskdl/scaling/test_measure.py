from __future__ import annotations

import os
from dataclasses import replace
from functools import partial

import pytest

from daskdl.scaling.measure import LEAST, measured
from daskdl.scaling.split import PARTS
from tests.daskdl.scaling.tiny import TINY, draw


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
