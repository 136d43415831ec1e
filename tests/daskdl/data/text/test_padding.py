from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl.data import SampleSet
from daskdl.data.ragged import Ragged
from daskdl.data.text import Encode, Vocabulary, buckets, lengths_of, pad
from daskdl.errors import DataError, SettingsError

SEQUENCES = st.lists(st.lists(st.integers(1, 9), max_size=9), min_size=1, max_size=8)


@given(SEQUENCES, st.integers(1, 12), st.sampled_from(["first", "last"]))
def test_pads_and_cuts(sequences, length, keep):
    padded, mask = pad(Ragged.of(sequences), length, keep=keep)
    assert padded.shape == mask.shape == (len(sequences), length)
    for row, inside, sequence in zip(padded, mask, sequences, strict=True):
        kept = sequence[:length] if keep == "first" else sequence[-length:]
        np.testing.assert_array_equal(row[inside], kept)
        assert (row[~inside] == 0).all()
        assert inside[: len(kept)].all()


@given(SEQUENCES, st.integers(1, 5))
def test_is_as_narrow_as_the_longest(sequences, multiple):
    padded, _ = pad(Ragged.of(sequences), multiple=multiple)
    longest = max(map(len, sequences))
    assert padded.shape[1] % multiple == 0
    assert max(1, longest) <= padded.shape[1] < max(1, longest) + multiple


@given(SEQUENCES, st.sets(st.integers(1, 9), min_size=1))
def test_buckets_hold_each_sequence_once_in_the_narrowest(sequences, bounds):
    bounds, lengths = sorted(bounds), list(map(len, sequences))
    found = buckets(lengths, bounds)
    assert sorted(i for _, where in found for i in where) == list(range(len(sequences)))
    for bound, where in found:
        assert all(bound == next((b for b in bounds if b >= lengths[i]), bounds[-1]) for i in where)


@given(SEQUENCES)
def test_lengths_are_those_before_padding(sequences):
    padded, _ = pad(Ragged.of(sequences), 9)
    np.testing.assert_array_equal(lengths_of(padded), list(map(len, sequences)))


def test_refusals():
    column = Ragged.of([[1]])
    with pytest.raises(SettingsError, match="found 0 and 1"):
        pad(column, 0)
    with pytest.raises(SettingsError, match="expected first or last, found 'middle'"):
        pad(column, keep="middle")
    with pytest.raises(SettingsError, match=r"increasing bounds from 1 on, found \[4, 4\]"):
        buckets([1], [4, 4])
    with pytest.raises(DataError, match=r"expected ids of shape \(n, T\), found \(3,\)"):
        lengths_of([1, 2, 3])


def test_texts_of_samples_become_ids():
    texts = np.array(["a b c", "b", ""], np.dtypes.StringDType())
    samples = SampleSet.from_arrays(x=texts, y=[0, 1, 0], partitions=2)
    vocabulary = Vocabulary.build(samples)
    batch = samples.map(Encode(vocabulary, 2, mask="inside", keep="last")).head()
    ids = {word: i for i, word in enumerate(vocabulary.words)}
    np.testing.assert_array_equal(batch["x"], [[ids["b"], ids["c"]], [ids["b"], 0], [0, 0]])
    np.testing.assert_array_equal(batch["inside"], [[1, 1], [1, 0], [0, 0]])
    np.testing.assert_array_equal(batch["y"], [0, 1, 0])
    assert samples.map(Encode(vocabulary)).head()["x"].shape == (3, 16)
    with pytest.raises(DataError, match=r"expected samples with 'text', found \['x', 'y'\]"):
        samples.map(Encode(vocabulary, column="text")).head()
