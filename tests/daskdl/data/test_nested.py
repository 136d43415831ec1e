"""Several arrays under one name: flat columns in every sample set, nested again for a model."""

from __future__ import annotations

import pickle
from functools import partial

import dask.array as da
import dask.bag as db
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl.data import Ragged, SampleSet
from daskdl.data.functions import Plain, name_of, wants_rng
from daskdl.data.nested import flat, nested
from daskdl.data.ragged import concatenated, stacked
from daskdl.errors import DataError, ShapeError

AGE = np.arange(6, dtype=np.float32)
WORDS = np.arange(12).reshape(6, 2)


def _lists(samples: SampleSet) -> dict[str, list[object]]:
    return {name: np.asarray(value).tolist() for name, value in samples.head(6).items()}


WANTED = {"x.age": AGE.tolist(), "x.words": WORDS.tolist(), "y": AGE.tolist()}


@pytest.mark.parametrize("of", ["arrays", "dask", "frame", "bag"])
def test_every_constructor_makes_the_same_columns(of):
    if of == "arrays":
        samples = SampleSet.from_arrays(x={"age": AGE, "words": WORDS}, y=AGE, partitions=2)
    elif of == "dask":
        x = {"age": da.from_array(AGE, chunks=2), "words": WORDS}
        samples = SampleSet.from_arrays(x=x, y=AGE)
    elif of == "frame":
        frame = pd.DataFrame({"a": AGE, "v": WORDS[:, 0], "w": WORDS[:, 1]})
        samples = SampleSet.from_dataframe(frame, x={"age": "a", "words": ["v", "w"]}, y="a")
    else:
        pairs = [({"age": a, "words": w}, a) for a, w in zip(AGE, WORDS, strict=True)]
        samples = SampleSet.from_bag(db.from_sequence(pairs, npartitions=2))
    assert _lists(samples) == WANTED
    assert samples.schema["x.words"][1].kind == "i"  # ids stay whole numbers


def test_a_tuple_is_numbered_and_comes_back():
    batch = SampleSet.from_arrays(x=(AGE, WORDS), y=AGE).head(3)
    assert list(batch) == ["x.0", "x.1", "y"]
    first, second = nested(batch, "x")
    assert first.tolist() == [0, 1, 2]
    assert second.shape == (3, 2)


def test_eleven_arrays_keep_their_order():
    columns = flat({"x": tuple(np.full(2, i) for i in range(11))})
    assert [int(a[0]) for a in nested(columns, "x")] == list(range(11))


def test_a_tuple_of_numbers_is_an_array():
    assert SampleSet.from_arrays(x=(1.0, 2.0)).head(2)["x"].tolist() == [1.0, 2.0]


def test_functions_may_return_either_form():
    samples = SampleSet.from_arrays(x={"age": AGE, "words": WORDS}, y=AGE)
    doubled = samples.map(lambda b: {"x": {"age": 2 * b["x.age"], "words": b["x.words"]}})
    assert doubled.head(6)["x.age"].tolist() == (2 * AGE).tolist()


def test_ragged_parts_are_taken():
    words = Ragged.of([[1], [2, 3]])
    assert SampleSet.from_arrays(x=(words, np.zeros(2))).head(2)["x.0"][1].tolist() == [2, 3]


@pytest.mark.parametrize(("x", "wrong"), [({}, "an empty one"), ({"a": {"b": AGE}}, "another one")])
def test_deeper_nesting_is_refused(x, wrong):
    with pytest.raises(DataError, match=rf"samples, x: expected .* found {wrong}"):
        SampleSet.from_arrays(x=x)


def test_lengths_that_differ_are_named():
    with pytest.raises(DataError, match=r"'x\.0': 6, 'x\.1': 2"):
        SampleSet.from_arrays(x=(AGE, AGE[:2]))


LISTS = st.lists(st.lists(st.integers(-9, 9), max_size=4), min_size=1, max_size=6)


@given(LISTS, st.data())
def test_a_ragged_column_is_a_list_of_sequences(lists, data):
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
    expected = [(row + [7] * n)[:n] for row in lists]
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


def test_values_are_stacked_by_their_types():
    assert stacked([1, 2]).tolist() == [1, 2]
    assert stacked(["a", "bcd"]).dtype == np.dtypes.StringDType()
    assert stacked(["a", None]).tolist() == ["a", None]  # no word "None"
    assert not isinstance(stacked([np.nan, "a"])[0], str)
    assert stacked([b"a\0", b"b"]).tolist() == [b"a\0", b"b"]  # NumPy's own bytes would lose one
    assert stacked([np.zeros((2, 3)), np.ones((2, 3))]).shape == (2, 2, 3)
    assert stacked([np.zeros((2, 3)), np.ones((1, 3))]).lengths.tolist() == [2, 1]
    with pytest.raises(ShapeError, match=r"found shapes \(2, 2\) and \(2, 3\)"):
        stacked([np.zeros((2, 3)), np.ones((2, 2))])


def test_columns_of_other_things_are_refused():
    with pytest.raises(ShapeError, match=r"items of one shape, found \(.*\) and \("):
        Ragged.of([np.zeros((1, 2)), np.zeros((1, 3))])
    with pytest.raises(ShapeError, match="found a single value"):
        Ragged.of([1, 2])


def add(batch, rng):
    return {"x": batch["x"] + rng.integers(100)}


def test_a_function_of_two_arguments_wants_a_generator():
    assert wants_rng(add)
    assert not wants_rng(Plain(add))
    assert not wants_rng(lambda batch: batch)
    assert not wants_rng(partial(add, rng=None))
    assert (name_of(add), name_of(Plain(add)), name_of(partial(add))) == ("add", "add", "partial")
