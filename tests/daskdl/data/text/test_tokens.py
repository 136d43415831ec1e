from __future__ import annotations

import pickle
from collections import Counter

import dask.array as da
import dask.bag as db
import numpy as np
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st

from daskdl.data import SampleSet
from daskdl.data.ragged import Ragged
from daskdl.data.text import Tokenizer, language_windows
from daskdl.data.text.tokens import count_words
from daskdl.errors import DataError, SettingsError
from tests.daskdl.data.epochs import all_of


@pytest.mark.parametrize(
    ("options", "tokens"),
    [
        ({}, ["it's", "10", "o'clock", ",", "žluť", ":", "(", "ok", ")"]),
        ({"lower": False}, ["It's", "10", "o'clock", ",", "Žluť", ":", "(", "OK", ")"]),
        ({"marks": False}, ["it's", "10", "o'clock", "žluť", "ok"]),
        (
            {"tags": True, "marks": False},
            ["it's", "10", "o'clock", "br", "žluť", "ok"],
        ),
    ],
)
def test_words_numbers_and_marks(options, tokens):
    text = "It's 10 o'clock,<br />Žluť: (OK)"
    assert Tokenizer(**options)(text) == tokens


def test_what_only_looks_like_a_tag_is_kept():
    assert Tokenizer()("a < b and b > c, i <3 u") == (
        ["a", "<", "b", "and", "b", ">", "c", ",", "i", "<", "3", "u"]
    )


@pytest.mark.slow
@given(st.text())
def test_nothing_but_spaces_is_lost(text):
    tokens = Tokenizer(lower=False, tags=True)(text)
    assert "".join(tokens) == "".join(text.split()) or any(c.isspace() for c in "".join(tokens))


@pytest.mark.parametrize("value", [None, float("nan"), b"bytes", 3])
def test_refuses_values_that_are_no_text(value):
    with pytest.raises(DataError, match="expected a text, found"):
        Tokenizer()(value)


def test_pickles():
    tokenizer = Tokenizer(marks=False)
    assert pickle.loads(pickle.dumps(tokenizer)) == tokenizer


TEXTS = st.lists(st.text(alphabet="ab .", max_size=12), min_size=1, max_size=20)


@settings(max_examples=10)
@given(TEXTS, st.integers(1, 20))
def test_counts_of_a_list_a_bag_and_samples_are_the_same(texts, partitions):
    expected = Counter(token for text in texts for token in Tokenizer()(text))
    assert count_words(texts, Tokenizer()) == expected
    assert count_words(db.from_sequence(texts, npartitions=partitions), Tokenizer()) == expected
    column = np.array(texts, np.dtypes.StringDType())
    samples = SampleSet.from_arrays(text=column, partitions=partitions)
    assert count_words(samples, Tokenizer(), column="text") == expected


def test_counts_tokens_as_they_are():
    tokens = [["A", "b c"], ("A",), np.array(["d"])]
    assert count_words(tokens, Tokenizer()) == {"A": 2, "b c": 1, "d": 1}
    bag = db.from_sequence([["A", "b c"], ["A"]], npartitions=2)
    assert count_words(bag, Tokenizer()) == {"A": 2, "b c": 1}


def test_counts_what_functions_of_the_samples_make():
    samples = SampleSet.from_arrays(x=np.array(["a", "b"]), partitions=2)
    doubled = samples.map(lambda batch: {"x": [f"{text} {text}" for text in batch["x"]]})
    assert count_words(doubled, str.split) == {"a": 2, "b": 2}


def test_says_which_text_is_none():
    with pytest.raises(DataError, match=r"text 1: expected a text .* found NoneType None"):
        count_words(["a", None], Tokenizer())


def test_refuses_other_collections():
    with pytest.raises(SettingsError, match=r"expected a dask Bag, .* found str"):
        count_words("one text", Tokenizer())
    with pytest.raises(DataError, match=r"expected samples with 'text', found \['x'\]"):
        count_words(SampleSet.from_arrays(x=["a"]), Tokenizer(), "text")


@given(st.integers(2, 60), st.integers(1, 8), st.integers(1, 8), st.integers(1, 5))
def test_windows_and_the_next_token_of_each_token(n, steps, stride, partitions):
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


def test_windows_of_any_source_are_the_same(tmp_path):
    ids = np.random.default_rng(0).integers(0, 50, 103).astype(np.int32)
    stored = zarr.create_array(tmp_path / "ids.zarr", data=ids, chunks=(10,))
    expected = all_of(language_windows(ids, 7, stride=3, partitions=4))
    for source in (stored, da.from_array(ids, chunks=20), Ragged(ids, np.array([0, 40, 103]))):
        samples = language_windows(source, 7, stride=3, partitions=4)
        assert samples.lengths == (8, 8, 8, 8)
        batch = all_of(samples)
        np.testing.assert_array_equal(batch["x"], expected["x"])
        np.testing.assert_array_equal(batch["y"], expected["y"])


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
