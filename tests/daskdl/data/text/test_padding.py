"""Padding and buckets of sequences; texts counted, encoded and written on workers as here."""

from __future__ import annotations

from collections.abc import Iterator

import dask.bag as db
import numpy as np
import pandas as pd
import pytest
from distributed import Client, get_worker
from hypothesis import given
from hypothesis import strategies as st

from daskdl.data import SampleSet
from daskdl.data.ragged import Ragged
from daskdl.data.results import write_results
from daskdl.data.text import Encode, Tokenizer, Vocabulary, buckets, lengths_of, pad
from daskdl.errors import DataError, SettingsError
from daskdl.text import Tokens
from tests.daskdl.clusters import small_client

SEQUENCES = st.lists(st.lists(st.integers(1, 9), max_size=9), min_size=1, max_size=8)


@given(SEQUENCES, st.integers(1, 12), st.sampled_from(["first", "last"]))
def test_pads_and_cuts(sequences, length, keep):
    padded, mask = pad(Ragged.of(sequences), length, keep=keep)
    assert padded.shape == mask.shape == (len(sequences), length)
    for row, inside, sequence in zip(padded, mask, sequences, strict=True):
        part = sequence[:length] if keep == "first" else sequence[-length:]
        np.testing.assert_array_equal(row[inside], part)
        assert (row[~inside] == 0).all()
        assert inside[: len(part)].all()


@given(SEQUENCES, st.integers(1, 5))
def test_padding_is_as_narrow_as_the_longest_sequence(sequences, multiple):
    padded, _ = pad(Ragged.of(sequences), multiple=multiple)
    longest = max(map(len, sequences))
    assert padded.shape[1] % multiple == 0
    assert max(1, longest) <= padded.shape[1] < max(1, longest) + multiple


@given(SEQUENCES, st.sets(st.integers(1, 9), min_size=1))
def test_buckets_hold_each_sequence_once_in_the_narrowest(sequences, bounds):
    bounds, lengths = sorted(bounds), list(map(len, sequences))
    by_bound = buckets(lengths, bounds)
    assert sorted(i for _, where in by_bound for i in where) == list(range(len(sequences)))
    for bound, where in by_bound:
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
    with pytest.raises(
        DataError, match=r"Tokens: expected samples with 'text', found \['x', 'y'\]"
    ):
        samples.map(Tokens(None, column="text")).head()


TEXTS = [f"{'the ' * (i % 3)}word{i % 7} and word{i % 4}" for i in range(40)]


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with small_client(2) as client:
        yield client


class Elsewhere(Tokenizer):
    """Refuses to work outside of a worker."""

    def __call__(self, text: str) -> list[str]:
        get_worker()  # raises where there is none
        return super().__call__(text)


def test_workers_count_encode_and_write_texts(client, tmp_path):
    here = Vocabulary.build(TEXTS)
    bag = db.from_sequence(TEXTS, npartitions=5)
    with client.as_current():
        assert Vocabulary.build(bag, Elsewhere()).words == here.words
        samples = SampleSet.from_bag(bag)
        assert Vocabulary.build(samples, Elsewhere()).words == here.words
        encoded = samples.map_batches(Encode(here, 6))
        written = write_results(encoded, tmp_path / "out")
        lengths = bag.map(lambda text: len(here.encode(text)))
        counted = write_results(lengths, tmp_path / "counts")
    frame = pd.concat(map(pd.read_parquet, written.parts))
    expected = Encode(here, 6)({"x": TEXTS})["x"]
    np.testing.assert_array_equal(np.stack(frame["x"]), expected)
    frame = pd.concat(map(pd.read_parquet, counted.parts))
    assert list(frame["prediction"]) == [len(text.split()) for text in TEXTS]
