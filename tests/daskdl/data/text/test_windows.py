from __future__ import annotations

import dask.array as da
import numpy as np
import pytest
import zarr
from hypothesis import given
from hypothesis import strategies as st

from daskdl.data.ragged import Ragged
from daskdl.data.text import language_windows
from daskdl.errors import DataError, SettingsError


def all_of(samples):
    return samples.head(len(samples))


@given(st.integers(2, 60), st.integers(1, 8), st.integers(1, 8), st.integers(1, 5))
def test_each_window_and_the_token_after_each_of_its_own(n, steps, stride, partitions):
    ids = np.arange(n)
    starts = range(0, n - steps, stride)
    if not len(starts):
        with pytest.raises(DataError, match=f"at least {steps + 1} tokens .* found {n}"):
            language_windows(ids, steps, stride=stride)
        return
    samples = language_windows(ids, steps, stride=stride, partitions=partitions)
    assert samples.partitions == min(partitions, len(starts))
    batch = all_of(samples)
    np.testing.assert_array_equal(batch["x"], [ids[a : a + steps] for a in starts])
    np.testing.assert_array_equal(batch["y"], batch["x"] + 1)
    assert samples.recipes[0].load().nbytes == samples.recipes[0].nbytes


def test_the_same_of_any_source(tmp_path):
    ids = np.random.default_rng(0).integers(0, 50, 103).astype(np.int32)
    stored = zarr.create_array(tmp_path / "ids.zarr", data=ids, chunks=(10,))
    expected = all_of(language_windows(ids, 7, stride=3, partitions=4))
    for source in (stored, da.from_array(ids, chunks=20), Ragged(ids, np.array([0, 40, 103]))):
        samples = language_windows(source, 7, stride=3, partitions=4)
        assert samples.lengths == (8, 8, 8, 8)
        found = all_of(samples)
        np.testing.assert_array_equal(found["x"], expected["x"])
        np.testing.assert_array_equal(found["y"], expected["y"])


def test_a_partition_carries_its_own_tokens_only():
    samples = language_windows(np.zeros(1001, np.int64), 10, partitions=4)
    assert samples.lengths == (25, 25, 25, 25)
    assert [recipe.source.size for recipe in samples.recipes] == [251] * 4
    assert all(recipe.in_memory for recipe in samples.recipes)


def test_refusals():
    with pytest.raises(DataError, match=r"expected integer ids of shape \(n,\), found float64"):
        language_windows(np.zeros(9), 2)
    with pytest.raises(SettingsError, match="found 0, 0 and 1"):
        language_windows(np.zeros(9, int), 0)
