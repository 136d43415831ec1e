from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl.cluster.placement import Place, assign

ADDRESSES = "abcde"
workers_of = st.dictionaries(st.sampled_from(ADDRESSES), st.integers(1, 4), min_size=1)
holders_of = st.lists(st.none() | st.sampled_from(ADDRESSES), min_size=1, max_size=30)


@given(holders_of, workers_of)
def test_each_worker_has_its_share_and_none_moves_without_need(holders, workers) -> None:
    owners = assign(holders, workers)
    assert len(owners) == len(holders)
    share = {w: -(-len(holders) * n // sum(workers.values())) for w, n in workers.items()}
    load = Counter(owners)
    assert all(load[w] <= share[w] for w in load)
    held = Counter(holders)
    for w, most in share.items():
        stayed = sum(h == o == w for h, o in zip(holders, owners, strict=True))
        assert stayed == min(held[w], most)


@given(holders_of, workers_of)
def test_what_is_placed_once_stays(holders, workers) -> None:
    owners = assign(holders, workers)
    assert assign(owners, dict(reversed(workers.items()))) == owners


@pytest.mark.parametrize(
    ("holders", "workers", "expected"),
    [
        ([None] * 6, {"b": 1, "a": 1}, "aaabbb"),  # neighbours together, in any order of workers
        ([None] * 6, {"a": 1, "b": 2}, "bbbbaa"),  # by threads
        (list("aaaa"), {"a": 1, "b": 1}, "aabb"),  # a worker has come
        (list("abab"), {"b": 1}, "bbbb"),  # a worker has gone
        ([None, "b", None, "b"], {"a": 1, "b": 1}, "abab"),
    ],
)
def test_shards_are_placed(holders, workers, expected: str) -> None:
    assert assign(holders, workers) == list(expected)


def test_a_task_goes_to_the_worker_of_the_shard_that_ends_its_key() -> None:
    assert Place(["a", "b", "c"])(("gradient-run", 7, 0, 2)) == ["c"]
