"""Lazy sample sets: checks, counts and transformations."""

from __future__ import annotations

import pickle

import dask.bag as db
import numpy as np
import pytest

from daskdl.data import Ragged, SampleSet
from daskdl.data.lazy.transformations import MapBatches, Permuted, Range, Select
from daskdl.data.recipe import Arrays
from daskdl.errors import DataError
from tests.daskdl.data.epochs import everything


def samples():
    x = np.zeros((6, 2), np.float32)
    x[1, 1] = np.nan
    boxes = Ragged.of([np.zeros((n, 4)) for n in (1, 0, 2, 1, 1, 3)])
    boxes.values[2, 0] = np.inf  # in the third sample
    return SampleSet.from_arrays(
        id=np.arange(6), x=x, y=np.array([0, 1, 2, -1, 9, 2]), boxes=boxes, partitions=2
    )


def test_bad_samples_are_left_out_and_named():
    checked = samples().check(classes={"y": 3}, on_error="skip")
    assert not checked.is_counted
    assert everything(checked.map(lambda batch: {"id": batch["id"]}))["id"].tolist() == [0, 5]
    assert checked.bad == (
        "partition 0, sample 1 (x is not finite)",
        "partition 0, sample 2 (boxes is not finite)",
        "partition 1, sample 0 (y = -1, not from 0 to 2)",
        "partition 1, sample 1 (y = 9, not from 0 to 2)",
    )


def test_shapes():
    some = samples().check(shapes={"boxes": (1, None), "x": (2,)}, finite=False, on_error="skip")
    assert everything(some)["id"].tolist() == [0, 3, 4]
    assert some.bad[0] == "partition 0, sample 1 (boxes of shape (0, 4), not (1, None))"


def test_a_bad_sample_is_an_error():
    checked = samples().check(finite=False, classes={"y": 3})
    assert checked.is_counted
    with pytest.raises(DataError, match=r"partition 1, sample 0 \(y = -1.* and 1 more in this"):
        everything(checked)
    assert len(everything(samples().check(finite=False))["id"]) == 6
    with pytest.raises(DataError, match=r"expected \['z'\] in every sample, found \['boxes',"):
        everything(samples().check(classes={"z": 3}))


def test_sets_made_of_each_other_are_counted_once():
    read = []

    def record(i):
        read.append(i)
        return i

    samples = SampleSet.from_bag(db.from_sequence(range(6), npartitions=2), record)
    mapped = samples.map(lambda batch: batch)
    assert (len(mapped), len(samples)) == (6, 6)
    assert len(read) == 6
    assert all(recipe.is_counted for recipe in samples.known)
    assert samples.recipes[0].known is samples.recipes[0]


def test_a_chain_of_filters_is_counted_in_one_go():
    read = []
    samples = SampleSet.from_bag(db.from_sequence(range(30), npartitions=3), lambda i: i)
    samples = samples.map_batches(lambda batch: read.extend(batch["x"]) or batch)
    some = samples.filter(lambda batch: batch["x"] % 2 == 0).filter(lambda b: b["x"] % 3 == 0)
    assert not some.is_counted
    assert some.lengths == (2, 2, 1)
    assert sorted(read) == list(range(30))


def test_a_source_that_changes_is_noticed():
    rows = [3, 2]
    samples = SampleSet.from_arrays(x=np.arange(3)).filter(
        lambda batch: batch["x"] < (rows.pop(0) if rows else 0)
    )
    assert len(samples) == 3
    with pytest.raises(DataError, match="the 3 samples that were counted in a partition, found 2"):
        samples.recipes[0].load()


def test_nothing_left_is_an_error():
    with pytest.raises(DataError, match="expected at least one sample, found none"):
        len(SampleSet.from_arrays(x=np.arange(3)).filter(lambda batch: batch["x"] > 9))


def test_drawn_places_are_cut_of_one_permutation():
    a, b = Permuted(1, "split", 0, 0, 4), Permuted(1, "split", 0, 4, 10)
    assert sorted([*a(10), *b(10)]) == list(range(10))
    assert pickle.loads(pickle.dumps(a))(10).tolist() == a(10).tolist()
    assert Permuted(1, "split", 0, 0, 4, sort=True)(10).tolist() == sorted(a(10))
    assert Permuted(1, "split", 1, 0, 4)(10).tolist() != a(10).tolist()
    assert len(pickle.dumps(a)) < 200


def test_samples_left_out_stay_named():
    arrays = Arrays({"x": np.arange(4)}, bad=("row 3 (bad)",))
    some = Select(Range(1, 3))(arrays)
    assert some.take(np.arange(2))["x"].tolist() == [1, 2]
    mapped = MapBatches(lambda batch: {"z": batch["x"]}, 3)(some)
    assert mapped.pick(np.array([1])).bad == ("row 3 (bad)",)
    assert len(MapBatches(lambda batch: batch, 3)(Arrays({}))) == 0


def test_sets_made_of_a_shuffle_are_marked_as_shuffled():
    samples = SampleSet.from_arrays(x=np.arange(6), partitions=2)
    mixed = samples.shuffle(1)
    more = mixed.map_batches(dict).repartition(3)
    assert all(recipe.is_shuffled for recipe in [*mixed.recipes, *more.recipes])
    part, _ = samples.split([0.5, 0.5])
    assert not any(recipe.is_shuffled for recipe in [*samples.recipes, *part.recipes])
