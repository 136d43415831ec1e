"""Plans: which rank adds and owns which numbers of a vector and of its buckets."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl.collective.group import Group, broadcast_tree
from daskdl.collective.payload import UNIT, Payload, join, rows_of, slice_of, split
from daskdl.collective.plan import WHOLE, Node, Plan, Span, additions, fold, joined, plans
from daskdl.collective.reduction import Reduction

Nodes = dict[Node, list[tuple[Span, str]]]


def canonical(shards: int) -> str:
    """Return the tree's sum of shards 0, 1, ... as text."""
    top = fold([str(s) for s in range(shards)], lambda level, shard, a, b: f"({a}+{b})")
    return top[0] if len(top) == 1 else f"({top[0]}+{top[1]})"


def find(nodes: Nodes, node: Node, span: Span) -> str:
    for (a, b), text in nodes.get(node, []):
        if a <= span[0] and span[1] <= b:
            return text
    raise AssertionError(f"{span} of {node} is not here")


def reduced(every: Sequence[Plan], owners: Sequence[int]) -> list[Nodes]:
    """Carry out the reduction with texts for numbers; return the nodes of each member."""
    members: list[Nodes] = [
        {(0, s): [(WHOLE, str(s))] for s, owner in enumerate(owners) if owner == m}
        for m in range(len(every))
    ]
    for plan, nodes in zip(every, members, strict=True):
        for left, right, result in plan.local:
            text = f"({find(nodes, left, WHOLE)}+{find(nodes, right, WHOLE)})"
            nodes[result] = [(WHOLE, text)]
    for i in range(len(every[0].reduce)):
        sent = [
            (peer, node, span, find(members[m], node, span))
            for m, plan in enumerate(every)
            for peer, parts in plan.reduce[i].sends.items()
            for node, span in parts
        ]
        for peer, node, span, text in sent:
            members[peer].setdefault(node, []).append((span, text))
        for nodes, plan in zip(members, every, strict=True):
            for left, right, result, span in plan.reduce[i].adds:
                text = f"({find(nodes, left, span)}+{find(nodes, right, span)})"
                nodes.setdefault(result, []).append((span, text))
    return members


@st.composite
def shards_of_members(draw: Callable[..., list[int]]) -> list[int]:
    members = draw(st.integers(1, 9))
    owners = [*range(members), *draw(st.lists(st.integers(0, members - 1), max_size=12))]
    return draw(st.permutations(owners))


@given(owners=shards_of_members())
def test_members_come_to_the_canonical_sum_of_all_numbers(owners: list[int]) -> None:
    every = plans(owners)
    covered = []
    for plan, nodes in zip(every, reduced(every, owners), strict=True):
        for start, stop in plan.owned:
            pieces = [(s, t) for s, t in nodes[plan.root] if start <= s[0] and s[1] <= stop]
            assert joined([span for span, _ in pieces]) == [(start, stop)]
            assert {text for _, text in pieces} == {canonical(len(owners))}
            covered.append((start, stop))
    assert sum(b - a for a, b in covered) == 1
    assert joined(covered) == [WHOLE]


@given(owners=shards_of_members())
def test_members_get_each_number_once(owners: list[int]) -> None:
    every = plans(owners)
    known = [list(plan.owned) for plan in every]
    for i in range(len(every[0].gather)):
        before = [joined(spans) for spans in known]
        for m, plan in enumerate(every):
            for peer, spans in plan.gather[i].sends.items():
                for a, b in spans:
                    assert any(c <= a and b <= d for c, d in before[m])
                    assert all(b <= c or d <= a for c, d in known[peer])
                    known[peer].append((a, b))
    assert all(joined(spans) == [WHOLE] for spans in known)


@given(owners=shards_of_members())
def test_each_send_has_its_receive(owners: list[int]) -> None:
    every = plans(owners)
    for name in ("reduce", "gather"):
        for m, plan in enumerate(every):
            for i, step in enumerate(getattr(plan, name)):
                assert m not in step.sends
                for peer in {*step.sends, *step.receives}:
                    assert peer in plan.peers
                for peer, parts in step.sends.items():
                    assert getattr(every[peer], name)[i].receives[m] == parts


def messages(plan: Plan) -> int:
    return sum(len(step.sends) for step in (*plan.reduce, *plan.gather))


@pytest.mark.parametrize("members", [2, 8, 64])
def test_messages_are_few_and_carry_only_the_numbers_needed(members: int) -> None:
    plan = plans(list(range(members)))[0]
    assert messages(plan) == 2 * (members.bit_length() - 1)
    sent = [b - a for s in plan.reduce for parts in s.sends.values() for _, (a, b) in parts]
    assert sum(sent) == 1 - Fraction(1, members)


def test_a_rank_with_all_shards_sends_nothing() -> None:
    (plan,) = plans([0] * 5)
    assert plan.peers == []
    assert plan.owned == [WHOLE]
    assert plan.local[-1][2] == plan.root


@pytest.mark.parametrize("shards", range(1, 10))
def test_additions_follow_the_tree(shards: int) -> None:
    texts = {(0, s): str(s) for s in range(shards)}
    steps, root = additions(shards)
    for left, right, result in steps:
        texts[result] = f"({texts[left]}+{texts[right]})"
    assert texts[root] == canonical(shards)


def test_whole_subtrees_are_added_before_they_are_sent() -> None:
    every = plans([0, 0, 0, 0, 1, 1, 1, 1])
    assert [len(plan.local) for plan in every] == [3, 3]
    assert [len(plan.reduce) for plan in every] == [1, 1]
    assert [parts for _, parts in every[0].reduce[0].sends.items()] == [
        [((2, 0), (Fraction(1, 2), Fraction(1)))]
    ]


OWNERS = [(0, 1), (0, 1, 0, 2, 1), (0, 1, 2, 3, 4, 5, 6)]


@pytest.mark.parametrize("owners", OWNERS)
@pytest.mark.parametrize("buckets", [1, 3, 16])
def test_ranks_own_a_part_of_each_bucket_and_together_the_whole(
    owners: tuple[int, ...], buckets: int
) -> None:
    ranks = range(max(owners) + 1)
    group = Group("g", tuple(f"rank-{r}" for r in ranks), owners, 1.0, buckets)
    every = []
    for rank in ranks:
        plan, parts = group.plan(rank), group.bucket_plans(rank)
        assert joined([span for part in parts for span in part.owned]) == plan.owned
        assert [part.span for part in parts] == [
            (Fraction(k, buckets), Fraction(k + 1, buckets)) for k in range(buckets)
        ]
        for part in parts:
            spans = [
                *part.owned,
                *(span for r in part.reduce for _, _, _, span in r.adds),
                *(span for r in part.reduce for each in r.sends.values() for _, span in each),
                *(span for r in part.gather for each in r.receives.values() for span in each),
            ]
            assert all(part.span[0] <= a <= b <= part.span[1] for a, b in spans)
        assert {peer for part in parts for peer in part.peers} == set(plan.peers)
        # In each round, a message of the whole plan joins the messages of its buckets.
        for i, round_ in enumerate(plan.gather):
            for peer, spans in round_.receives.items():
                assert spans == [s for part in parts for s in part.gather[i].receives[peer]]
        every += plan.owned
    assert joined(every) == [WHOLE]
    assert sum(b - a for a, b in every) == 1


def test_a_rank_has_a_name_for_errors() -> None:
    group = Group("g", ("tcp://a:1", "tcp://b:1"), (0, *[1] * 20), 1.0)
    assert group.name(0) == "worker tcp://a:1 (shard 0)"
    assert group.name(1) == "worker tcp://b:1 (shards 1, 2, 3, 4, 5, 6, 7, 8, ...)"
    assert [group.shards(rank)[:2] for rank in range(2)] == [[0], [1, 2]]


@given(size=st.integers(0, 1000), cuts=st.lists(st.fractions(0, 1), max_size=9))
def test_parts_of_a_vector_cover_it_once(size: int, cuts: list[Fraction]) -> None:
    bounds = sorted({Fraction(0), Fraction(1), *cuts})
    slices = [slice_of(span, size) for span in pairwise(bounds)]
    covered = [i for s in slices for i in range(s.start, s.stop)]
    assert covered == list(range(size))
    assert all(s.start % UNIT == 0 or s.start == size for s in slices)


def test_one_slice_is_a_view_and_several_are_side_by_side() -> None:
    vector = np.arange(8.0, dtype=np.float32)
    assert join(vector, [slice(2, 5)]).base is vector
    values = join(vector, [slice(6, 8), slice(0, 1)])
    np.testing.assert_array_equal(values, [6, 7, 0])
    other = np.zeros(8, np.float32)
    split(values, other, [slice(6, 8), slice(0, 1)])
    np.testing.assert_array_equal(other, [0, 0, 0, 0, 0, 0, 6, 7])


def test_rows_of_a_table_are_shared_out_like_numbers() -> None:
    assert [rows_of((Fraction(1, 5), Fraction(4, 5)), n) for n in (5, 3)] == [(1, 4), (0, 2)]


Leaves = list[str | None]


def halved(leaves: Leaves, first: int, size: int) -> str | None:
    """Recursive halving of ``size`` leaves, a power of two, by its definition."""
    if size == 1:
        return leaves[first] if first < len(leaves) else None
    half = size // 2
    left, right = halved(leaves, first, half), halved(leaves, first + half, half)
    return f"({left}{right})" if left and right else left or right


@given(st.lists(st.booleans(), min_size=1, max_size=40))
def test_the_tree_is_recursive_halving_of_any_leaves(present: list[bool]) -> None:
    leaves: Leaves = [f"{i}," if here else None for i, here in enumerate(present)]
    half = max(1, 2 ** math.ceil(math.log2(len(leaves))) // 2)
    expected = [halved(leaves, first, half) for first in (0, half)]
    trees = fold(leaves, lambda level, shard, left, right: f"({left}{right})")
    assert trees == [tree for tree in expected if tree]


@given(st.lists(st.integers(-(2**40), 2**40), min_size=1, max_size=40))
def test_nothing_is_lost_or_added_twice(values: list[int]) -> None:
    leaves = [np.float64(v) for v in values]  # their sums are exact
    assert sum(fold(leaves, lambda level, shard, left, right: left + right)) == sum(values)


@pytest.mark.parametrize("n", [2, 3, 5, 8, 13])
def test_a_node_is_named_by_its_level_and_first_shard(n: int) -> None:
    names: list[tuple[int, int]] = []

    def combine(level: int, shard: int, left: set[int], right: set[int]) -> set[int]:
        names.append((level, shard))
        assert shard == min(left)
        assert min(right) == shard + 2 ** (level - 1)
        return left | right

    fold([{s} for s in range(n)], combine)
    assert len(set(names)) == len(names) == n - 2


@given(st.integers(1, 40), st.integers(0, 9))
def test_the_broadcast_tree_reaches_all_ranks_over_known_peers(n: int, more: int) -> None:
    every = plans([*range(n), *(s % n for s in range(more))])
    places = broadcast_tree(every)
    assert places[0].parent is None
    assert sorted(places[0].below) == list(range(n))
    for rank, place in enumerate(places):
        below = [r for child in place.children for r in places[child].below]
        assert place.below == [rank, *below]
        for child in place.children:
            assert places[child].parent == rank
            assert child in every[rank].peers


@pytest.mark.slow
def test_the_broadcast_tree_of_many_ranks_is_flat() -> None:
    places = broadcast_tree(plans(range(256)))
    assert len(places[0].children) == 8
    depth = {0: 0}
    for rank in places[0].below[1:]:
        parent = places[rank].parent
        assert parent is not None
        depth[rank] = depth[parent] + 1
    assert max(depth.values()) == 8


def test_sums_of_own_shards_leave_one_vector() -> None:
    reduction = Reduction(plans([0] * 4)[0], 8)
    leaves = np.random.default_rng(0).normal(size=(4, 8)).astype(np.float32)
    want = (leaves[0] + leaves[1]) + (leaves[2] + leaves[3])
    for s, leaf in enumerate(leaves):
        reduction.put(s, Payload(leaf.copy(), sums=(float(s),)))
    assert len([partial for partial in reduction._held.values() if partial.pieces]) == 1
    total = reduction.total()
    np.testing.assert_array_equal(total.vector, want)
    assert total.sums == (6.0,)


def test_shards_without_samples_have_no_sum() -> None:
    reduction = Reduction(plans([0, 0])[0], 8)
    for s in range(2):
        reduction.put(s, None)
    with pytest.raises(ValueError, match="expected a payload of at least one shard, found none"):
        reduction.total()
