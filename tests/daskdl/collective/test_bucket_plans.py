"""Plans of buckets: each is reduced by itself, and all together make the plan of the vector."""

from __future__ import annotations

from fractions import Fraction

import pytest

from daskdl.collective.group import Group
from daskdl.collective.plan import WHOLE, joined

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
        # A message of the whole plan has what the buckets' messages of that round have.
        for i, round_ in enumerate(plan.gather):
            for peer, spans in round_.receives.items():
                assert spans == [s for part in parts for s in part.gather[i].receives[peer]]
        every += plan.owned
    assert joined(every) == [WHOLE]
    assert sum(b - a for a, b in every) == 1
