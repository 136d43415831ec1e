"""SampleSet: made from arrays and stores, mapped lazily, every sample drawn once an epoch."""

from __future__ import annotations

from functools import partial
from itertools import chain

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from daskdl.data import Ragged, SampleSet
from daskdl.data.recipe import Arrays
from daskdl.errors import DataError, SettingsError, ShapeError
from tests.daskdl.data.epochs import epoch, everything


def numbered(n=10, **options):
    """Return samples that are numbered."""
    return SampleSet.from_arrays(
        x=np.arange(n), y=np.arange(n, dtype=np.float32)[:, None] / 2, **options
    )


# --- epochs


@given(
    st.integers(1, 40), st.integers(1, 12), st.integers(1, 6), st.integers(1, 50), st.integers(0, 3)
)
def test_every_sample_once_per_epoch(n, partitions, again, batch_size, number):
    # Cut twice, so that partitions are joined of parts.
    samples = numbered(n, partitions=partitions).repartition(again)
    drawn = [batch["x"].tolist() for batch in epoch(samples, batch_size, number=number)]
    assert [len(batch) for batch in drawn[:-1]] == [batch_size] * (len(drawn) - 1)
    assert sorted(chain(*drawn)) == list(range(n))


def test_partitions_without_samples_are_passed_over():
    empty, some = Arrays({"x": np.arange(0)}), Arrays({"x": np.arange(5)})
    samples = SampleSet([empty, some, empty])
    assert (samples.lengths, len(samples), samples.partitions) == ((0, 5, 0), 5, 3)
    assert samples.head(2)["x"].tolist() == [0, 1]
    assert sorted(np.concatenate([b["x"] for b in epoch(samples, 2)])) == list(range(5))
    assert samples.repartition(2).lengths == (2, 3)


# --- lengths, sizes and first samples


def test_lengths_and_sizes():
    samples = numbered(10, partitions=3)
    assert (samples.lengths, samples.partitions, len(samples)) == ((3, 3, 4), 3, 10)
    assert samples.nbytes == 10 * 12
    assert samples.schema == {"x": ((), np.int64), "y": ((1,), np.float32)}
    assert numbered(3, partitions=99).lengths == (1, 1, 1)


def test_head_is_the_first_samples_of_any_partitions():
    samples = numbered(10, partitions=4)
    assert samples.head()["x"].tolist() == [0, 1, 2, 3, 4]
    assert samples.head(99)["x"].tolist() == list(range(10))
    assert {name: a.shape for name, a in samples.head(0).items()} == {"x": (0,), "y": (0, 1)}


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({}, "found no arrays"),
        ({"x": np.zeros((3, 2)), "y": np.zeros(4)}, "found {'x': 3, 'y': 4}"),
        ({"x": np.zeros(3), "y": 1.0}, "found {'x': 3, 'y': 'no axis'}"),
        ({"x": scipy.sparse.eye(3)}, "x: expected an array .* found dia_.*; make one"),
        ({"x": np.zeros((0, 2))}, "expected at least one sample, found none"),
    ],
)
def test_arrays_that_are_no_samples_are_refused(arrays, message):
    with pytest.raises(DataError, match=message):
        SampleSet.from_arrays(**arrays)


def test_lists_of_different_lengths_are_sequences():
    assert SampleSet.from_arrays(x=[[1], [2, 3]]).head(2)["x"].lengths.tolist() == [1, 2]
    with pytest.raises(ShapeError, match=r"from_arrays, x: .* shapes \(1, 1\) and \(2, 2\); fill"):
        SampleSet.from_arrays(x=[[[1]], [[2, 3], [4, 5]]])


# --- map


def doubled(batch):
    return {"x": 2 * batch["x"]}


def noisy(batch, rng):
    return {"x": batch["x"] + rng.random(len(batch["x"]))}


def scaled(batch, factor=3):
    return {"x": factor * batch["x"]}


class Augment:
    def __call__(self, batch, rng):
        return noisy(batch, rng)


def test_functions_are_called_in_turn_where_samples_are_drawn():
    called = []

    def look(batch):
        called.append(len(batch["x"]))
        return batch

    samples = numbered().map(look).map(doubled).map(partial(scaled, factor=5)).map(scaled)
    assert called == []
    assert samples.repartition(2).head(3)["x"].tolist() == [0, 30, 60]
    assert called == [3]
    assert numbered().head(2).keys() == {"x", "y"}


@pytest.mark.parametrize("function", [noisy, Augment(), partial(noisy), lambda b, r: noisy(b, r)])
def test_random_numbers_depend_on_what_is_drawn(function):
    samples = numbered().map(function)
    (partition,) = (recipe.load() for recipe in samples.recipes)

    def draw(*numbers):
        return samples.take(partition, np.arange(10), (1, "map", *numbers))["x"].tolist()

    assert draw(0, 3) == draw(0, 3)
    assert draw(0, 3) != draw(1, 3)
    # Two functions of one draw do not get the same numbers.
    twice = samples.map(function).take(partition, np.arange(10), (1, "map", 0, 3))["x"]
    assert (np.abs(twice - 2 * np.array(draw(0, 3)) + np.arange(10)) > 1e-6).all()


def test_an_optional_argument_is_the_functions_own():
    assert numbered().map(scaled).head(2)["x"].tolist() == [0, 3]

    def seeded(batch, rng=None):
        return {"x": batch["x"], "drawn": np.full(len(batch["x"]), rng is not None)}

    assert numbered().map(seeded).head(1)["drawn"].all()


@pytest.mark.parametrize("way", ["map", "map_batches"])
def test_lists_and_series_that_functions_return_are_arrays(way):
    def listed(batch):
        n = len(batch["x"])
        words, ragged = pd.Series(["a"] * n), [[1.5] * (i + 1) for i in range(n)]
        return {"x": [[1, 2]] * n, "words": words, "ragged": ragged}

    batch = getattr(numbered(), way)(listed).head(2)
    assert batch["x"].tolist() == [[1, 2], [1, 2]]
    assert batch["words"].tolist() == ["a", "a"]
    assert isinstance(batch["ragged"], Ragged)
    uneven = numbered().map(lambda batch: {"x": [np.zeros((i, i)) for i in (1, 2)]})
    with pytest.raises(ShapeError, match=r"SampleSet\.map, .*<lambda>, x: expected values of one"):
        uneven.head(2)


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ({}, "found {}"),
        ([1, 2], "found list"),
        ({"x": np.zeros(3), "y": np.zeros(2)}, r"found {'x': \(3,\), 'y': \(2,\)}"),
        ({"x": np.float32(3)}, r"found {'x': \(\)}"),
        ({"w": Ragged.of([[1], [], [2]])}, r"found {'w': \(3,\)}"),
    ],
)
def test_wrong_results_of_functions_are_refused(result, message):
    def spoil(batch):
        return result

    with pytest.raises(DataError, match=r"expected .*spoil to return .* of 2 samples, " + message):
        numbered().map(spoil).head(2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: s.head(-1), "at least 0 samples, found -1"),
        (lambda s: s.repartition(0), "partitions: expected at least 1, found 0"),
        (lambda s: s.map(3), r"SampleSet\.map: expected a function, found 3"),
        (lambda s: s.map_batches(doubled, 0), "batch_size: expected at least 1, found 0"),
        (lambda s: s.map(noisy).filter(bool), "filter: .* found that noisy draws random numbers"),
        (lambda s: s.split([0.5, 0.6]), r"split: expected positive fractions .* found \["),
        (lambda s: s.split([]), r"split: expected positive fractions .* found \["),
        (lambda s: s.split([-0.5, 1.0]), r"split: expected positive fractions .* found \["),
    ],
)
def test_settings_that_make_no_sense_are_refused(call, message):
    with pytest.raises(SettingsError, match=message):
        call(numbered())


# --- sets made of others


@settings(max_examples=20)
@given(
    st.integers(2, 60),
    st.integers(1, 7),
    st.integers(0, 3),
    st.lists(st.integers(1, 9), min_size=1, max_size=4),
)
def test_a_split_has_every_sample_once(n, partitions, seed, weights):
    fractions = np.array(weights) / sum(weights)
    try:
        parts = numbered(n, partitions=partitions).split(fractions, seed)
    except DataError:
        assert min(fractions) * n < 1
        return
    numbers = [everything(part)["x"].tolist() for part in parts]
    assert sorted(chain(*numbers)) == list(range(n))
    assert all(abs(len(h) - f * n) <= 1 for h, f in zip(numbers, fractions, strict=True))
    assert all(len(part) == len(h) for part, h in zip(parts, numbers, strict=True))


def test_a_split_is_random_by_its_seed_and_may_leave_some_out():
    samples = numbered(100, partitions=3)
    (some,) = samples.split([0.3], seed=1)
    (same,), (other,) = samples.split([0.3], seed=1), samples.split([0.3], seed=2)
    assert everything(some)["x"].tolist() == everything(same)["x"].tolist()
    assert everything(some)["x"].tolist() != everything(other)["x"].tolist()
    assert some.lengths == (10, 10, 10)  # a share of each partition


@settings(max_examples=20)
@given(st.integers(1, 60), st.integers(1, 7), st.integers(0, 3))
def test_a_shuffle_keeps_every_sample(n, partitions, seed):
    mixed = numbered(n, partitions=partitions).shuffle(seed)
    columns = everything(mixed)
    assert sorted(columns["x"].tolist()) == list(range(n))
    np.testing.assert_array_equal(columns["y"][:, 0], columns["x"] / 2)
    assert sum(mixed.lengths) == n


def test_a_shuffle_mixes_all_partitions():
    mixed, same, other = (numbered(60, partitions=3).shuffle(seed) for seed in (1, 1, 2))
    assert max(mixed.lengths) - min(mixed.lengths) <= 3
    for recipe in mixed.recipes:
        came_from = recipe.load().take(np.arange(len(recipe)))["x"] // 20
        assert np.bincount(came_from).tolist() in ([6, 7, 7], [7, 6, 7], [7, 7, 6])
        assert (np.diff(came_from) < 0).any()  # out of order
    order, again, another = (everything(some)["x"].tolist() for some in (mixed, same, other))
    assert order == again != another


def test_functions_of_partitions_are_called_once_in_stretches():
    called = []

    def look(batch):
        called.append(len(batch["x"]))
        return {"x": 2 * batch["x"]}

    samples = numbered(10, partitions=2).map_batches(look, batch_size=3).map(scaled)
    assert called == []
    loaded = [recipe.load() for recipe in samples.recipes]
    assert called == [3, 2, 3, 2]
    for _ in range(2):
        assert samples.take(loaded[0], np.arange(2), (0, "test"))["x"].tolist() == [0, 6]
    assert called == [3, 2, 3, 2]
    later = numbered(10).map(doubled).map_batches(doubled)
    assert later.head(3)["x"].tolist() == [0, 4, 8]


def test_a_filter_sees_what_the_functions_before_it_leave():
    samples = numbered(10).map(doubled).filter(lambda batch: batch["x"] >= 12)
    assert samples.head()["x"].tolist() == [12, 14, 16, 18]
    with pytest.raises(DataError, match=r"to return 10 booleans, found int64 \(10,\)"):
        len(numbered().filter(lambda batch: batch["x"]))


def test_without_a_cluster_partitions_persist_in_this_process():
    called = []
    samples = numbered(10, partitions=2).map_batches(lambda b: called.append(1) or b).persist()
    for _ in range(2):
        assert everything(samples)["x"].tolist() == list(range(10))
    assert called == [1, 1]
