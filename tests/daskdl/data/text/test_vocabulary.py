from __future__ import annotations

import pickle
import random

import dask.bag as db
import numpy as np
import pytest

from daskdl.data.text import Tokenizer, Vocabulary
from daskdl.errors import DataError, SettingsError

TEXTS = ["b a c", "a b", "a d", "e"]


def test_numbers_by_count_then_alphabet():
    assert Vocabulary.build(TEXTS).words[2:] == ("a", "b", "c", "d", "e")


def test_the_order_does_not_depend_on_that_of_the_texts_or_on_partitions():
    texts = [f"{a} {b} {a}" for a in "zyxw" for b in "qrst"]
    expected = Vocabulary.build(texts)
    for seed in range(3):
        mixed = random.Random(seed).sample(texts, len(texts))
        assert Vocabulary.build(mixed) == expected
        assert Vocabulary.build(db.from_sequence(mixed, npartitions=seed + 2)) == expected


def test_minimum_and_size():
    assert Vocabulary.build(TEXTS, minimum=2).words[2:] == ("a", "b")
    assert Vocabulary.build(TEXTS, size=3).words[2:] == ("a", "b", "c")
    assert len(Vocabulary.build(TEXTS, size=3)) == 5
    with pytest.raises(DataError, match=r"words that occur at least 9 times, found none among 5"):
        Vocabulary.build(TEXTS, minimum=9)
    with pytest.raises(SettingsError, match="found 0 and None"):
        Vocabulary.build(TEXTS, minimum=0)


def test_encodes_and_decodes():
    vocabulary = Vocabulary.build(TEXTS)
    ids = vocabulary.encode("b Z a")
    assert ids.dtype == np.int32
    np.testing.assert_array_equal(ids, [3, 1, 2])
    np.testing.assert_array_equal(vocabulary.encode(["b", "Z", "a"]), ids)
    assert vocabulary.encode("").shape == (0,)
    assert vocabulary.decode([*ids, 0, 0]) == ["b", "<unknown>", "a"]
    with pytest.raises(DataError, match="expected numbers from 0 to 6, found 7"):
        vocabulary.decode([7])


def test_encodes_many():
    vocabulary = Vocabulary.build(TEXTS)
    column = vocabulary.encode_all(["a b", "", ["q"]])
    assert [row.tolist() for row in column] == [[2, 3], [], [1]]
    assert column.values.dtype == np.int32
    with pytest.raises(DataError, match="text 2: expected a text"):
        vocabulary.encode_all(["a", "b", None])


def test_what_looks_special_is_unknown():
    assert Vocabulary.build(TEXTS).encode(["<padding>", "<unknown>"]).tolist() == [1, 1]
    assert "<padding>" not in Vocabulary.build(TEXTS)


def test_refuses_a_word_twice():
    with pytest.raises(DataError, match="expected each word once, found 'a' more often"):
        Vocabulary(["a", "b", "a"])


def test_survives_a_file(tmp_path):
    vocabulary = Vocabulary.build(["Žluť, Å"], Tokenizer(lower=False, marks=False))
    vocabulary.save(tmp_path / "words.json")
    loaded = Vocabulary.load(tmp_path / "words.json")
    assert loaded == vocabulary
    assert loaded.encode("Žluť Å").tolist() == [3, 2]
    with pytest.raises(DataError, match="which a file cannot keep"):
        Vocabulary.build(TEXTS, str.split).save(tmp_path / "other.json")


@pytest.mark.parametrize("content", [None, "{", '{"format": "other"}', "[]", '{"words": []}'])
def test_refuses_other_files(tmp_path, content):
    path = tmp_path / "words.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(DataError, match=r"words.json: expected a vocabulary of format"):
        Vocabulary.load(path)


def test_pickles_without_its_index():
    vocabulary = Vocabulary.build(TEXTS)
    before = len(pickle.dumps(vocabulary))
    vocabulary.encode("a")
    assert len(pickle.dumps(vocabulary)) == before
    again = pickle.loads(pickle.dumps(vocabulary))
    assert again == vocabulary
    assert again.encode("a").tolist() == [2]
