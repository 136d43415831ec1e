"""The parts of an iteration, and efficiency."""

from __future__ import annotations

import pytest

from daskdl.scaling.split import PARTS, WORK, counts, split, strong, weak
from daskdl.train.engines.step import Record
from daskdl.train.watch.history import History


def history(reduce: float = 0.05) -> History:
    """Return one group of an iteration and two of two, with a second an iteration and more."""
    made = History()
    for i, (size, took) in enumerate([(1, 20.0), (2, 2.5), (2, 2.25)]):
        records = [
            Record(1.0, 8, 0.1, 0.2, 0.3, 0.1, 10.0 * i + j, reduce, 0.03, idle=0.02)
            for j in range(size)
        ]
        made.add(records, took)
    return made


def test_the_parts_add_up_to_an_iteration() -> None:
    found = split(history(), groups=[1, 3], seconds=5.0)
    assert tuple(found) == PARTS
    assert sum(found.values()) == pytest.approx(5 / 4)
    known = {"data": 0.1, "forward": 0.2, "backward": 0.3, "update": 0.1}
    known |= {"reduce": 0.05, "broadcast": 0.03}
    for name, value in known.items():
        assert found[name] == pytest.approx(value), name
    assert set(WORK) < set(PARTS)


def test_scheduling_is_what_groups_cost_and_idle_the_rest() -> None:
    found = split(history(), groups=[1, 3], seconds=5.0)
    # Iterations in a group last 1 s, with 0.8 s of clocks: the first of each 1.5 and 1.25 s. What
    # is between the groups took 0.25 s more.
    assert found["idle"] == pytest.approx(0.02 + 0.2)
    assert found["scheduling"] == pytest.approx((0.5 + 0.25 + 0.25) / 4)


def test_all_that_has_no_clock_in_a_graph_is_scheduling() -> None:
    found = split(history(reduce=0.0), groups=[1, 3], seconds=5.0)
    assert found["idle"] == pytest.approx(0.02)
    assert found["scheduling"] == pytest.approx(1.25 - 0.75)


def test_groups_of_one_iteration_leave_nothing_idle_but_the_slowest() -> None:
    found = split(history(), groups=[1, 2, 3, 4], seconds=5.0)
    assert found["idle"] == pytest.approx(0.02)


def test_clocks_that_overlap_leave_nothing_between_them() -> None:
    found = split(history(), groups=[1, 3], seconds=2.0)
    assert found["scheduling"] == pytest.approx(0)
    assert sum(found.values()) == pytest.approx(0.5)


def test_twice_the_time_for_as_much_each_is_half_the_efficiency() -> None:
    assert weak(1.5, 1.5) == 1
    assert weak(1.0, 2.0) == 0.5


def test_as_much_together_in_a_part_of_the_time_is_efficient() -> None:
    assert strong(1, 8.0, 4, 2.0) == 1
    assert strong(1, 8.0, 4, 4.0) == 0.5
    assert strong(2, 4.0, 4, 2.0) == 1


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [(1, 1, [1]), (1, 8, [1, 2, 4, 8]), (1, 6, [1, 2, 4, 6]), (8, 256, [8, 16, 32, 64, 128, 256])],
)
def test_each_number_is_twice_the_one_before_up_to_the_last(first, last, expected) -> None:
    assert counts(first, last) == expected
