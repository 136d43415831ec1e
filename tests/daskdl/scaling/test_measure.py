from __future__ import annotations

import pytest

from daskdl.scaling.measure import LEAST, measured
from daskdl.scaling.split import PARTS
from tests.daskdl.scaling.tiny import TINY


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


def test_as_many_workers_take_part_as_are_asked_for(client) -> None:
    assert measured(client, TINY, 1, 4, 0.0).parts["idle"] == pytest.approx(0, abs=1e-9)
