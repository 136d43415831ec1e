"""Ragged: indexed, padded and joined as lists of arrays are."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl.data.ragged import Ragged, concatenated, stacked
from daskdl.errors import ShapeError

LISTS = st.lists(st.lists(st.integers(-9, 9), max_size=4), min_size=1, max_size=6)


@given(LISTS, st.data())
def test_it_is_a_list_of_sequences(lists, data):
    column = Ragged.of(lists)
    assert [a.tolist() for a in column] == lists
    assert column.lengths.tolist() == list(map(len, lists))
    i = data.draw(st.integers(-len(lists), len(lists) - 1))
    assert column[i].tolist() == lists[i]
    a, b = (data.draw(st.integers(0, 7)) for _ in range(2))
    assert [s.tolist() for s in column[a:b]] == lists[a:b]
    chosen = data.draw(st.lists(st.integers(0, len(lists) - 1), max_size=8))
    assert [s.tolist() for s in column[np.array(chosen, int)]] == [lists[k] for k in chosen]
    joined = concatenated([column[a:b], column])
    assert [s.tolist() for s in joined] == lists[a:b] + lists
    assert [s.tolist() for s in pickle.loads(pickle.dumps(column))] == lists


@given(LISTS, st.one_of(st.none(), st.integers(0, 5)))
def test_padded_to_the_longest_or_to_a_length(lists, length):
    n = max(map(len, lists)) if length is None else length
    expected = [(one + [7] * n)[:n] for one in lists]
    assert Ragged.of(lists).padded(length, value=7).tolist() == expected


def test_items_may_have_axes():
    boxes = Ragged.of([np.zeros((0, 4), np.float32), np.ones((2, 4), np.float32)])
    assert (boxes.values.shape, boxes.dtype, boxes.nbytes) == ((2, 4), np.float32, 32 + 24)
    assert boxes.padded().shape == (2, 2, 4)


def test_an_array_among_ragged_columns_becomes_ragged():
    mixed = concatenated([np.array([[1, 2], [3, 4]]), Ragged.of([[5]])])
    assert [s.tolist() for s in mixed] == [[1, 2], [3, 4], [5]]
    widths = concatenated([np.array([[1, 2]]), np.array([[3]])])  # each of one length by chance
    assert [s.tolist() for s in widths] == [[1, 2], [3]]


def test_stacked_by_what_the_values_are():
    assert stacked([1, 2]).tolist() == [1, 2]
    assert stacked(["a", "bcd"]).dtype == np.dtypes.StringDType()
    assert stacked([b"a\0", b"b"]).tolist() == [b"a\0", b"b"]  # NumPy's own bytes would lose one
    assert stacked([np.zeros((2, 3)), np.ones((2, 3))]).shape == (2, 2, 3)
    assert stacked([np.zeros((2, 3)), np.ones((1, 3))]).lengths.tolist() == [2, 1]
    with pytest.raises(ShapeError, match=r"found shapes \(2, 2\) and \(2, 3\)"):
        stacked([np.zeros((2, 3)), np.ones((2, 2))])


def test_what_is_no_column_of_sequences_is_refused():
    with pytest.raises(ShapeError, match=r"items of one shape, found \(.*\) and \("):
        Ragged.of([np.zeros((1, 2)), np.zeros((1, 3))])
    with pytest.raises(ShapeError, match="found a single value"):
        Ragged.of([1, 2])
