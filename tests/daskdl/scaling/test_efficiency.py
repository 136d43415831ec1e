from __future__ import annotations

import pytest

from daskdl.scaling.efficiency import counts, strong, weak


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
