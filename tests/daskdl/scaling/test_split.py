from __future__ import annotations

import pytest

from daskdl.scaling.split import PARTS, WORK, split
from daskdl.train.history import History
from daskdl.train.step import Record


def history(*clocks: float) -> History:
    """Return three iterations, of which the first took long."""
    made = History()
    data, forward, backward, update = clocks
    for i in range(3):
        slow = 10.0 if i == 0 else 1.0
        record = Record(
            1.0, 8, slow * data, forward, backward, update, 100.0 + i, 0.05, 0.03, idle=0.02
        )
        made.add([record], 1.0)
    return made


def test_the_parts_add_up_to_an_iteration_and_scheduling_is_the_rest() -> None:
    found = split(history(0.1, 0.2, 0.3, 0.1), first=1, seconds=2.5)
    assert tuple(found) == PARTS
    assert sum(found.values()) == pytest.approx(1.25)
    known = {"data": 0.1, "forward": 0.2, "backward": 0.3, "update": 0.1}
    known |= {"reduce": 0.05, "broadcast": 0.03, "idle": 0.02}
    for name, value in known.items():
        assert found[name] == pytest.approx(value), name
    assert found["scheduling"] == pytest.approx(1.25 - 0.8)
    assert set(WORK) < set(PARTS)


def test_clocks_that_overlap_leave_nothing_between_them() -> None:
    found = split(history(0.1, 0.2, 0.3, 0.1), first=1, seconds=0.8)
    assert found["scheduling"] == pytest.approx(0)
    assert found["forward"] == pytest.approx(0.1)
    assert sum(found.values()) == pytest.approx(0.4)
