from __future__ import annotations

from collections import Counter

import dask.bag as db
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskdl.data import SampleSet
from daskdl.data.text import Tokenizer
from daskdl.data.text.counts import count_words
from daskdl.errors import DataError, SettingsError

TEXTS = st.lists(st.text(alphabet="ab .", max_size=12), min_size=1, max_size=20)


@settings(max_examples=10)
@given(TEXTS, st.integers(1, 20))
def test_the_same_of_a_list_a_bag_and_samples(texts, partitions):
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


def test_says_what_it_counts():
    with pytest.raises(SettingsError, match=r"expected a dask Bag, .* found str"):
        count_words("one text", Tokenizer())
    with pytest.raises(DataError, match=r"expected samples with 'text', found \['x'\]"):
        count_words(SampleSet.from_arrays(x=["a"]), Tokenizer(), "text")
