from __future__ import annotations

from daskdl.collective.group import Group


def test_a_rank_has_a_name_for_errors() -> None:
    group = Group("g", ("tcp://a:1", "tcp://b:1"), (0, *[1] * 20), 1.0)
    assert group.name(0) == "worker tcp://a:1 (shard 0)"
    assert group.name(1) == "worker tcp://b:1 (shards 1, 2, 3, 4, 5, 6, 7, 8, ...)"
    assert [group.shards(rank)[:2] for rank in range(2)] == [[0], [1, 2]]
