"""Transformations: permuted positions cover all samples once, and are the same everywhere."""

from __future__ import annotations

import pickle

import numpy as np

from daskdl.data import SampleSet
from daskdl.data.arrays import Arrays
from daskdl.data.lazy.transformations import MapBatches, Permuted, Range, Select, stretches


def test_drawn_places_are_cut_of_one_permutation():
    a, b = Permuted(1, "split", 0, 0, 4), Permuted(1, "split", 0, 4, 10)
    assert sorted([*a(10), *b(10)]) == list(range(10))
    assert pickle.loads(pickle.dumps(a))(10).tolist() == a(10).tolist()
    assert Permuted(1, "split", 0, 0, 4, sort=True)(10).tolist() == sorted(a(10))
    assert Permuted(1, "split", 1, 0, 4)(10).tolist() != a(10).tolist()
    assert len(pickle.dumps(a)) < 200


def test_what_was_left_out_stays_known():
    held = Arrays({"x": np.arange(4)}, bad=("row 3 (bad)",))
    some = Select(Range(1, 3))(held)
    assert some.take(np.arange(2))["x"].tolist() == [1, 2]
    mapped = MapBatches(lambda batch: {"z": batch["x"]}, 3)(some)
    assert mapped.pick(np.array([1])).bad == ("row 3 (bad)",)
    assert len(MapBatches(lambda batch: batch, 3)(Arrays({}))) == 0


def test_stretches():
    assert [s.tolist() for s in stretches(5, 2)] == [[0, 1], [2, 3], [4]]
    assert stretches(0, 2) == []


def test_a_shuffle_is_known_below_what_is_made_of_it():
    samples = SampleSet.from_arrays(x=np.arange(6), partitions=2)
    mixed = samples.shuffle(1)
    more = mixed.map_batches(dict).repartition(3)
    assert all(recipe.is_shuffled for recipe in [*mixed.recipes, *more.recipes])
    part, _ = samples.split([0.5, 0.5])
    assert not any(recipe.is_shuffled for recipe in [*samples.recipes, *part.recipes])
