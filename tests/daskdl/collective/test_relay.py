from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl.collective.communicator import Exchange
from daskdl.collective.plan import plans
from daskdl.collective.relay import passed_down, passed_up, relays
from tests.daskdl.train.meetings import Pair, pair


@given(st.integers(1, 40), st.integers(0, 9))
def test_all_members_hang_on_the_first_over_connections_that_they_have(n: int, more: int) -> None:
    of_all = plans([*range(n), *(s % n for s in range(more))])
    found = relays(of_all)
    assert found[0].parent is None
    assert sorted(found[0].below) == list(range(n))
    for member, relay in enumerate(found):
        below = [m for child in relay.children for m in found[child].below]
        assert relay.below == [member, *below]
        for child in relay.children:
            assert found[child].parent == member
            assert child in of_all[member].peers


def test_the_way_to_the_last_of_many_is_short() -> None:
    found = relays(plans(range(256)))
    assert len(found[0].children) == 8
    depth = {0: 0}
    for member in found[0].below[1:]:
        parent = found[member].parent
        assert parent is not None
        depth[member] = depth[parent] + 1
    assert max(depth.values()) == 8


@pytest.fixture(scope="module")
def workers() -> Iterator[Pair]:
    with pair("tcp://") as two:
        yield two


def test_words_go_down_and_arrays_come_up(workers: Pair) -> None:
    both, places = workers.opened("relay"), relays(plans([0, 1]))
    own = [[np.arange(3.0)], [np.array([7.0])]]
    times = [np.array([[2.0, 1.0, 1.0]]), np.array([[1.0, 0.5, 3.0]])]

    def member(rank: int, exchange: Exchange) -> tuple[object, object]:
        word = passed_down(exchange, places[rank], 4, None if rank else {"word": [b"x", 2]})
        up = passed_up(exchange, places, rank, 4, own[rank], [3, 1], times[rank], b"%d" % rank)
        exchange.close()
        return word, up

    first, second = [workers.threads.submit(member, r, e) for r, e in enumerate(both)]
    (word, up), (heard, nothing) = first.result(30), second.result(30)
    assert word == heard == {"word": [b"x", 2]}
    assert nothing is None
    assert isinstance(up, tuple)
    np.testing.assert_array_equal(up[0][0][0], own[0][0])
    np.testing.assert_array_equal(up[0][1][0], own[1][0])
    np.testing.assert_array_equal(up[1], [[1.0, 1.0, 1.0]])
    assert sorted(up[2]) == [b"0", b"1"]


def test_a_gang_of_one_passes_to_itself(workers: Pair) -> None:
    exchange, places = workers.exchange(0, "alone"), relays(plans([0, 0]))
    assert passed_down(exchange, places[0], 0, {"word": 1}) == {"word": 1}
    up = passed_up(exchange, places, 0, 0, [np.ones(2)], [2], np.ones((1, 3)), b"own")
    assert up is not None
    np.testing.assert_array_equal(up[0][0][0], np.ones(2))
