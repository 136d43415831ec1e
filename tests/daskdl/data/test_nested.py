"""Several arrays under one name: laid flat at every door, and nested again for a model."""

from __future__ import annotations

import dask.array as da
import dask.bag as db
import numpy as np
import pandas as pd
import pytest

from daskdl.data import Ragged, SampleSet
from daskdl.data.nested import flat, nested
from daskdl.errors import DataError

AGE = np.arange(6, dtype=np.float32)
WORDS = np.arange(12).reshape(6, 2)


def _frame(samples: SampleSet) -> dict[str, list[object]]:
    return {name: np.asarray(value).tolist() for name, value in samples.head(6).items()}


WANTED = {"x.age": AGE.tolist(), "x.words": WORDS.tolist(), "y": AGE.tolist()}


@pytest.mark.parametrize("of", ["arrays", "dask", "frame", "bag"])
def test_every_door_makes_the_same_columns(of):
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
    assert _frame(samples) == WANTED
    assert samples.schema["x.words"][1].kind == "i"  # ids stay whole numbers


def test_a_tuple_is_numbered_and_comes_back():
    held = SampleSet.from_arrays(x=(AGE, WORDS), y=AGE).head(3)
    assert list(held) == ["x.0", "x.1", "y"]
    first, second = nested(held, "x")
    assert first.tolist() == [0, 1, 2]
    assert second.shape == (3, 2)


def test_eleven_arrays_keep_their_order():
    held = flat({"x": tuple(np.full(2, i) for i in range(11))})
    assert [int(a[0]) for a in nested(held, "x")] == list(range(11))


def test_a_tuple_of_numbers_is_an_array():
    assert SampleSet.from_arrays(x=(1.0, 2.0)).head(2)["x"].tolist() == [1.0, 2.0]


def test_functions_may_return_either_form():
    samples = SampleSet.from_arrays(x={"age": AGE, "words": WORDS}, y=AGE)
    doubled = samples.map(lambda b: {"x": {"age": 2 * b["x.age"], "words": b["x.words"]}})
    assert doubled.head(6)["x.age"].tolist() == (2 * AGE).tolist()


def test_ragged_parts_are_taken():
    words = Ragged.of([[1], [2, 3]])
    assert SampleSet.from_arrays(x=(words, np.zeros(2))).head(2)["x.0"][1].tolist() == [2, 3]


@pytest.mark.parametrize(("x", "found"), [({}, "an empty one"), ({"a": {"b": AGE}}, "another one")])
def test_deeper_ones_are_refused(x, found):
    with pytest.raises(DataError, match=rf"samples, x: expected .* found {found}"):
        SampleSet.from_arrays(x=x)


def test_lengths_that_differ_are_named():
    with pytest.raises(DataError, match=r"'x\.0': 6, 'x\.1': 2"):
        SampleSet.from_arrays(x=(AGE, AGE[:2]))
