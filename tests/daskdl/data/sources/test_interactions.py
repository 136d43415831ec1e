from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskdl.data import SampleSet
from daskdl.data.sources.interactions import Interactions
from daskdl.errors import DataError, SettingsError

PAIRS = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 8), st.integers(0, 99)),
    min_size=2,
    max_size=30,
    unique_by=lambda row: row[:2],
)


def made(rows, **options):
    users, items, times = np.array(rows).T
    return Interactions(users, items, times, user_count=5, item_count=10, **options)


@given(PAIRS)
def test_holds_back_the_last_of_each_user(rows):
    known, counts = made(rows), np.bincount([row[0] for row in rows], minlength=5)
    if counts.max() < 2:
        with pytest.raises(DataError, match="more than one interaction"):
            known.leave_one_out()
        return
    rest, last = known.leave_one_out()
    together = np.concatenate([rest.pairs, last.pairs])
    assert sorted(map(tuple, together)) == sorted(row[:2] for row in rows)
    assert sorted(last.users) == np.flatnonzero(counts > 1).tolist()
    for user, time in zip(last.users, last.times, strict=True):
        assert time == max(row[2] for row in rows if row[0] == user)


@given(PAIRS, st.integers(1, 8))
def test_candidates_are_items_that_were_never_met(rows, negatives):
    known, met = made(rows), {row[:2] for row in rows}
    queries = made([row for i, row in enumerate(rows) if row[0] not in {r[0] for r in rows[:i]}])
    candidates = known.candidates(queries, negatives, seed=3)
    assert candidates.shape == (len(queries), 1 + negatives, 2)
    np.testing.assert_array_equal(candidates[:, 0], queries.pairs)
    for pairs in candidates:
        others = [tuple(pair) for pair in pairs[1:]]
        assert not met & set(others)
        assert {user for user, _ in others} == {pairs[0, 0]}
        free = 10 - sum(user == pairs[0, 0] for user, _ in met)
        assert len(set(others)) == negatives or free < negatives
    np.testing.assert_array_equal(candidates, known.candidates(queries, negatives, seed=3))


@settings(max_examples=10)
@given(PAIRS, st.integers(1, 6))
def test_negatives_are_items_that_were_never_met(rows, negatives):
    known, met = made(rows), {row[:2] for row in rows}
    draw = pickle.loads(pickle.dumps(known.with_negatives(negatives)))
    batch = draw({"x": known.pairs}, np.random.default_rng(1))
    assert batch["x"].shape == (len(rows), 1 + negatives, 2)
    np.testing.assert_array_equal(batch["x"][:, 0], known.pairs)
    assert not met & set(map(tuple, batch["x"][:, 1:].reshape(-1, 2)))
    assert (batch["x"][..., 0] == known.users[:, None]).all()
    np.testing.assert_array_equal(batch["y"], [[1] + negatives * [0]] * len(rows))


def test_every_unmet_item_is_drawn_alike():
    known = Interactions([0, 0], [1, 3], item_count=6)
    draw = known.with_negatives(8000)
    items = draw({"x": known.pairs[:1]}, np.random.default_rng(0))["x"][0, 1:, 1]
    assert set(items) == {0, 2, 4, 5}
    assert np.abs(np.bincount(items)[[0, 2, 4, 5]] - 2000).max() < 200


def test_negatives_are_drawn_anew_but_the_same_for_the_same_seed():
    known = Interactions(np.zeros(8, int), np.arange(8), item_count=1000)
    samples = SampleSet.from_arrays(x=known.pairs).map(known.with_negatives())
    partition, where = samples.recipes[0].load(), np.arange(8)
    first, again, other = (
        samples.take(partition, where, (0, "map", epoch))["x"] for epoch in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert (first[:, 1:] != other[:, 1:]).any()


def test_refusals():
    with pytest.raises(DataError, match=r"one length \(n,\), found shapes .*'items': \(1,\)"):
        Interactions([0, 1], [0])
    with pytest.raises(DataError, match="users to be whole numbers from 0 on, found int64 from -1"):
        Interactions([-1], [0])
    with pytest.raises(DataError, match="expected items below 3, found 3"):
        Interactions([0], [3], item_count=3)
    full = Interactions([0, 0, 1], [0, 1, 0])
    with pytest.raises(DataError, match="user 0 has met all 2; leave such users out"):
        full.with_negatives()
    with pytest.raises(DataError, match="user 0 has met all 2"):
        full.candidates(Interactions([0], [1]), 3)
    with pytest.raises(SettingsError, match="expected at least 1, found 0"):
        Interactions([0], [0], item_count=3).with_negatives(0)
