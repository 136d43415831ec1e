"""Counting: once, by whoever asks first, and checked when it is loaded again."""

from __future__ import annotations

import dask.bag as db
import numpy as np
import pytest

from daskdl.data import SampleSet
from daskdl.errors import DataError


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
