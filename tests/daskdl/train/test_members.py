from __future__ import annotations

import math

from daskdl.train.members import Gang
from daskdl.train.tables import Tables


def test_members_share_the_vector_out() -> None:
    gang = Gang("g", ("tcp://a:1", "tcp://b:1", "tcp://c:1"), (0, 0, 1, 2, 1), 1.0)
    tables = Tables(("users", "items"), ((90, 6), (1, 7)), 1000)
    covered = [i for own in gang.slices(tables) for s in own for i in range(s.start, s.stop)]
    assert sorted(covered) == list(range(1000 + 90 * 6 + 7))
    assert [gang.shards(rank) for rank in range(3)] == [[0, 1], [2, 4], [3]]
    assert math.prod(gang.plan(rank).root[0] for rank in range(3)) == 27


def test_a_member_has_a_name_for_errors() -> None:
    gang = Gang("g", ("tcp://a:1", "tcp://b:1"), (0, *[1] * 20), 1.0)
    assert gang.name(0) == "worker tcp://a:1 (shard 0)"
    assert gang.name(1) == "worker tcp://b:1 (shards 1, 2, 3, 4, 5, 6, 7, 8, ...)"
