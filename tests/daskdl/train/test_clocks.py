from __future__ import annotations

import pytest

from daskdl.train.clocks import Clocks


def test_what_shards_wait_for_the_slowest_is_idle() -> None:
    quick, slow = Clocks.of(0.5, 1.0, 1.5), Clocks.of(0.5, 2.0, 3.5)
    both = quick.plus(slow)
    assert both == slow.plus(quick)
    assert (both.longest, both.shards) == (6.0, 2)
    found = both.means()
    assert found == {"data": 0.5, "forward": 1.5, "backward": 2.5, "idle": 1.5}
    assert sum(found.values()) == slow.longest


def test_a_worker_computes_its_shards_in_turn() -> None:
    of_four = Clocks.of(0.5, 1.0, 1.5)
    for _ in range(3):
        of_four = of_four.plus(Clocks.of(0.5, 1.0, 1.5))
    assert of_four.means(2) == {"data": 1.0, "forward": 2.0, "backward": 3.0, "idle": 0.0}
    assert of_four.means(8) == of_four.means()


def test_one_shard_waits_for_none() -> None:
    assert Clocks.of(0.25, 0.5, 0.5).means()["idle"] == 0
    three = Clocks.of(0.1, 0.2, 0.3).plus(Clocks.of(0.3, 0.2, 0.1)).plus(Clocks.of(0.2, 0.2, 0.2))
    assert three.means()["idle"] == pytest.approx(0)
