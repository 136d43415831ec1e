"""Lazily: Dask's collections as arrays, functions of chunks, and what is computed."""

from __future__ import annotations

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from daskdl.errors import DataError
from daskdl.sklearn.lazily import array_of, computed, each, is_lazy, no_rows

X = np.arange(12.0).reshape(6, 2)


def test_what_is_lazy() -> None:
    frame = pd.DataFrame(X, columns=["a", "b"])
    lazy = dd.from_pandas(frame, npartitions=2)
    assert [is_lazy(v) for v in (X, frame, da.from_array(X), lazy, lazy["a"])] == [
        False, False, True, True, True,
    ]  # fmt: skip
    assert array_of(lazy).npartitions == 2
    np.testing.assert_array_equal(array_of(lazy).compute(), X)
    assert array_of(X) is X
    assert list(no_rows(lazy).columns) == ["a", "b"]
    assert no_rows(da.from_array(X)).shape == (0, 2)
    with pytest.raises(DataError, match="found 1 axes"):
        no_rows(da.ones(3))


def test_each_chunk_goes_through_the_function() -> None:
    lazy = da.from_array(X, chunks=(4, 2))
    found = each(lambda x: x.argmax(1), lazy, drop_axis=1)
    assert (found.chunks, found.dtype) == (((4, 2),), np.int64)
    np.testing.assert_array_equal(found.compute(), each(lambda x: x.argmax(1), X))
    wide = each(lambda x: x[:, np.newaxis], lazy[:, 0], new_axis=1)
    assert wide.shape == (6, 1)


def test_only_what_is_lazy_is_computed() -> None:
    assert computed(X, None)[0] is X
    found = computed(da.from_array(X), X, None)
    assert [type(v) for v in found] == [np.ndarray, np.ndarray, type(None)]
