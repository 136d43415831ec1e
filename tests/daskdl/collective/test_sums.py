from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from daskdl.collective.plan import Plan, plans
from daskdl.collective.sums import Sums, views
from daskdl.collective.tree import fold
from daskdl.train.clocks import Clocks
from daskdl.train.step import Gradient, add


def gradients(shards: int, size: int, empty: set[int]) -> list[Gradient | None]:
    """Return gradients whose sum is another in every other order."""
    rng = np.random.default_rng(shards)
    return [
        None
        if s in empty
        else Gradient(
            (rng.normal(size=size) * 10.0 ** rng.integers(-3, 4)).astype(np.float32),
            float(rng.normal() * 10.0 ** rng.integers(-9, 9)),
            int(rng.integers(1, 9)),
            Clocks.of(*rng.random(3).tolist()),
        )
        for s in range(shards)
    ]


def expected(leaves: list[Gradient | None]) -> Gradient:
    top = fold(leaves, lambda level, shard, a, b: add(a, b))
    return top[0] if len(top) == 1 else add(*top)


def exchanged(members: list[Sums], of: list[Plan]) -> None:
    """Carry every message of an iteration."""
    for i in range(len(of[0].reduce)):
        outgoing = [m.outgoing(plan.reduce[i]) for m, plan in zip(members, of, strict=True)]
        for rank, member in enumerate(members):
            notes = {}
            for peer, room in member.room(i).items():
                notes[peer], arrays = outgoing[peer][rank]
                places = [r for r, n in zip(room, notes[peer], strict=True) if n is not None]
                for place, array in zip(places, arrays, strict=True):
                    place[...] = array
            member.take(i, notes)


@settings(max_examples=40)
@given(data=st.data())
def test_members_have_the_bits_of_the_sum_in_one_place(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 5), "members")
    rest = data.draw(st.lists(st.integers(0, n - 1), max_size=6), "other owners")
    owners = data.draw(st.permutations([*range(n), *rest]), "owners")
    size = data.draw(st.sampled_from([1, 17, 100, 333]), "size")
    own_plans = plans(owners)
    members = [Sums(plan, size) for plan in own_plans]
    for _ in range(2):  # the memory is used again
        shards = st.integers(0, len(owners) - 1)
        empty = data.draw(st.sets(shards, max_size=len(owners) - 1), "empty")
        leaves = gradients(len(owners), size, empty)
        want = expected(leaves)
        for rank, member in enumerate(members):
            member.begin()
            for s, owner in enumerate(owners):
                leaf = leaves[s]
                if owner == rank:
                    own = leaf and Gradient(
                        leaf.vector.copy(), leaf.loss, leaf.samples, leaf.seconds
                    )
                    member.put(s, own)
        exchanged(members, own_plans)
        for member in members:
            total = member.total()
            assert (total.loss, total.samples, total.seconds) == (
                want.loss,
                want.samples,
                want.seconds,
            )
            found = np.concatenate([want.vector[s] for s in member.owned])
            np.testing.assert_array_equal(total.vector, found)


def test_sums_of_own_shards_leave_one_vector() -> None:
    sums, leaves = Sums(plans([0] * 4)[0], 8), gradients(4, 8, set())
    want = expected(leaves)
    for s, leaf in enumerate(leaves):
        sums.put(s, leaf)
    held = [partial for partial in sums._held.values() if partial.pieces]
    assert len(held) == 1
    np.testing.assert_array_equal(sums.total().vector, want.vector)


def test_parts_are_views() -> None:
    vector = np.zeros(100, np.float32)
    (part,) = views(vector, plans([0, 1])[1].owned)
    part += 1
    assert vector.sum() == part.size == 52
