from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from daskdl.collective.plan import plans
from daskdl.collective.row_sums import Pieces, RowSums
from daskdl.collective.tree import fold
from daskdl.rows import Rows
from daskdl.train.tables import WHOLE, Tables

TABLES = Tables(("a", "b"), ((17, 2), (1, 3)), 0)


def touched(shard: int) -> list[Rows]:
    """Return rows whose sums are others in every other order."""
    rng = np.random.default_rng(shard)
    return [
        Rows.of(
            rng.integers(0, rows, 6),
            (rng.normal(size=(6, width)) * 10.0 ** rng.integers(-3, 4)).astype(np.float32),
            rows,
        )
        for rows, width in TABLES.shapes
    ]


@settings(max_examples=30)
@given(data=st.data())
def test_members_have_the_bits_of_the_sum_in_one_place(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 5), "members")
    rest = data.draw(st.lists(st.integers(0, n - 1), max_size=6), "other owners")
    owners = data.draw(st.permutations([*range(n), *rest]), "owners")
    shards = st.integers(0, len(owners) - 1)
    empty = data.draw(st.sets(shards, max_size=len(owners) - 1), "empty")
    of = plans(owners)
    members = [RowSums(plan, TABLES) for plan in of]
    leaves = [None if s in empty else touched(s) for s in range(len(owners))]
    for shard, owner in enumerate(owners):
        members[owner].put(shard, leaves[shard])
    for i in range(len(of[0].reduce)):
        sent = [m.outgoing(plan.reduce[i]) for m, plan in zip(members, of, strict=True)]
        for rank, (member, plan) in enumerate(zip(members, of, strict=True)):
            came = {peer: sent[peer][rank] for peer in plan.reduce[i].receives}
            member.take(plan.reduce[i], came)

    top = fold(leaves, lambda level, shard, a, b: [x + y for x, y in zip(a, b, strict=True)])
    expected = top[0] if len(top) == 1 else [x + y for x, y in zip(*top, strict=True)]
    own = [m.total(plan.owned) for m, plan in zip(members, of, strict=True)]
    for table, rows in enumerate(expected):
        found = np.zeros(rows.shape, np.float32)
        for each in own:
            assert not found[each[table].ids].any()  # nobody else has these
            found += each[table].dense()
        np.testing.assert_array_equal(found, rows.dense())


def test_pieces_are_given_in_any_parts() -> None:
    pieces, rows = Pieces(TABLES), touched(1)
    halves = [span for plan in plans([0, 1]) for span in plan.owned]
    for span in reversed(halves):
        pieces.take([span], TABLES.part(rows, span))
    for found, expected in zip(pieces.part(WHOLE), rows, strict=True):
        np.testing.assert_array_equal(found.dense(), expected.dense())
    assert len(pieces.parts(halves)) == 4
