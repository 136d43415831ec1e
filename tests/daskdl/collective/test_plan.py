from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl.collective.plan import WHOLE, Node, Plan, Span, additions, joined, plans
from daskdl.collective.tree import fold

Held = dict[Node, list[tuple[Span, str]]]


def canonical(shards: int) -> str:
    """Return the tree's sum of shards 0, 1, ... as text."""
    top = fold([str(s) for s in range(shards)], lambda level, shard, a, b: f"({a}+{b})")
    return top[0] if len(top) == 1 else f"({top[0]}+{top[1]})"


def find(held: Held, node: Node, span: Span) -> str:
    for (a, b), text in held.get(node, []):
        if a <= span[0] and span[1] <= b:
            return text
    raise AssertionError(f"{span} of {node} is not here")


def reduced(every: Sequence[Plan], owners: Sequence[int]) -> list[Held]:
    """Carry out the reduction with texts for numbers; return what each member holds."""
    held: list[Held] = [
        {(0, s): [(WHOLE, str(s))] for s, owner in enumerate(owners) if owner == m}
        for m in range(len(every))
    ]
    for plan, own in zip(every, held, strict=True):
        for left, right, result in plan.local:
            text = f"({find(own, left, WHOLE)}+{find(own, right, WHOLE)})"
            own[result] = [(WHOLE, text)]
    for i in range(len(every[0].reduce)):
        sent = [
            (peer, node, span, find(held[m], node, span))
            for m, plan in enumerate(every)
            for peer, parts in plan.reduce[i].sends.items()
            for node, span in parts
        ]
        for peer, node, span, text in sent:
            held[peer].setdefault(node, []).append((span, text))
        for own, plan in zip(held, every, strict=True):
            for left, right, result, span in plan.reduce[i].adds:
                text = f"({find(own, left, span)}+{find(own, right, span)})"
                own.setdefault(result, []).append((span, text))
    return held


@st.composite
def shards_of_members(draw: Callable[..., list[int]]) -> list[int]:
    members = draw(st.integers(1, 9))
    owners = [*range(members), *draw(st.lists(st.integers(0, members - 1), max_size=12))]
    return draw(st.permutations(owners))


@given(owners=shards_of_members())
def test_members_come_to_the_canonical_sum_of_all_numbers(owners: list[int]) -> None:
    every = plans(owners)
    covered = []
    for plan, own in zip(every, reduced(every, owners), strict=True):
        for start, stop in plan.owned:
            pieces = [(s, t) for s, t in own[plan.root] if start <= s[0] and s[1] <= stop]
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
def test_what_one_sends_the_other_waits_for(owners: list[int]) -> None:
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
def test_messages_are_few_and_of_no_more_numbers_than_must_be(members: int) -> None:
    plan = plans(list(range(members)))[0]
    assert messages(plan) == 2 * (members.bit_length() - 1)
    sent = [b - a for s in plan.reduce for parts in s.sends.values() for _, (a, b) in parts]
    assert sum(sent) == 1 - Fraction(1, members)


def test_who_has_all_shards_speaks_to_nobody() -> None:
    (plan,) = plans([0] * 5)
    assert plan.peers == []
    assert plan.owned == [WHOLE]
    assert plan.local[-1][2] == plan.root


@pytest.mark.parametrize("shards", range(1, 10))
def test_the_sums_are_the_trees(shards: int) -> None:
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
