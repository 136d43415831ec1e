"""Results that wait: what joins them is done once, and what others read is left as it is."""

from __future__ import annotations

from typing import Any

import numpy as np

from daskdl.nn.inference.pending import Joined, Pending


def waiting(numbers: list[str]) -> Pending:
    """Return ones that wait; what is computed and what is extended is noted down."""

    def apply(x: np.ndarray, joined: Joined) -> np.ndarray:
        for more in (joined.bias, joined.beside):
            x = x if more is None else x + more
        return np.clip(x, joined.low, joined.high)

    def compute(joined: Joined) -> np.ndarray:
        numbers.append("computed")
        return apply(np.ones((2, 3), np.float32), joined)

    def extend(x: np.ndarray, joined: Joined) -> np.ndarray:
        numbers.append("extended")
        return apply(x, joined)

    return Pending(compute, extend, (2, 3), np.float32)


def values(tensor: Any) -> list[float]:
    return np.unique(tensor.data).tolist()


def test_what_joined_a_result_that_others_read_is_not_joined_again() -> None:
    told: list[str] = []
    first = waiting(told)
    beside = np.full((2, 3), 10, np.float32)
    added = first.use().with_(first.joined._replace(beside=beside))
    limited = added.use().with_(added.joined._replace(high=5.0))
    added.use()  # somebody reads the sum itself too
    assert values(limited) == [5]
    assert values(added) == [11]
    assert told == ["computed", "extended"]

    added = (first := waiting(told)).use().with_(first.joined._replace(beside=beside))
    raised = added.use().with_(added.joined._replace(low=2.0))
    added.use()
    assert values(raised) == [11]  # not 21


def test_a_result_is_alone_until_a_second_reader_comes() -> None:
    first = waiting([])
    assert first.alone() is first
    first.use()
    assert first.alone() is first
    first.use()
    assert first.alone() is None


def test_a_result_that_replaces_one_with_other_readers_is_not_alone() -> None:
    first = waiting([])
    made = first.use().with_(first.joined._replace(low=0.0))
    assert made.alone() is made
    first.use()
    assert made.alone() is None


def test_a_computed_result_is_not_alone() -> None:
    first = waiting([])
    assert values(first) == [1]
    assert first.alone() is None
