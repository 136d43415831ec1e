"""Vocabularies of words, and vectors of them."""

from __future__ import annotations

import gzip
import pickle
import random

import dask.bag as db
import numpy as np
import pytest

from daskdl.data.text import Tokenizer, Vocabulary, read_vectors
from daskdl.data.text import vectors as module
from daskdl.errors import DataError, SettingsError

TEXTS = ["b a c", "a b", "a d", "e"]


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


def test_words_like_special_ones_are_unknown():
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
    copy = pickle.loads(pickle.dumps(vocabulary))
    assert copy == vocabulary
    assert copy.encode("a").tolist() == [2]


LINES = "the 0.5 -1 2e-1\n. . . 1 2 3\ncat 4 5 6\nat a@b.c 7 8 9\n"
ROWS = np.array([[0.5, -1, 0.2], [1, 2, 3], [4, 5, 6], [7, 8, 9]], np.float32)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_text(LINES, encoding="utf-8")
    return path


@pytest.mark.parametrize("at_once", [1, 3, 4096])
def test_reads_words_with_and_without_spaces(path, monkeypatch, at_once):
    monkeypatch.setattr(module, "AT_ONCE", at_once)
    vectors = read_vectors(path)
    assert vectors.words == ("the", ". . .", "cat", "at a@b.c")
    assert vectors.values.dtype == np.float32
    np.testing.assert_array_equal(vectors.values, ROWS)


def test_reads_compressed_files_blank_lines_and_a_header(tmp_path):
    path = tmp_path / "vectors.txt.gz"
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.write(f"4 3\n\n{LINES}".replace("\n", " \r\n"))
    np.testing.assert_array_equal(read_vectors(path).values, ROWS)


def test_reads_only_what_is_asked_for_and_the_first_of_two(tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_text(f"{LINES}cat 0 0 0\ndog x y z\n", encoding="utf-8")
    vectors = read_vectors(path, {"cat", "bird"})
    assert vectors.words == ("cat",)
    np.testing.assert_array_equal(vectors.values, ROWS[2:3])


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("dog 1 2", "a word and 3 numbers, as before, found 'dog 1 2'"),
        ("dog 1 2 3 4", "a word and 3 numbers, as before, found 'dog 1 2 3 4'"),
        ("dog 1 two 3", "3 finite numbers, found '1 two 3'"),
        ("dog 1 nan 3", "3 finite numbers, found '1 nan 3'"),
        ("dog", "a word and 3 numbers, as before, found 'dog'"),
    ],
)
def test_names_the_bad_line(tmp_path, line, expected):
    path = tmp_path / "vectors.txt"
    path.write_text(f"{LINES}{line}\n", encoding="utf-8")
    with pytest.raises(DataError, match=f"vectors.txt, line 5: expected {expected}"):
        read_vectors(path)


def test_names_what_is_no_file_of_vectors(tmp_path):
    with pytest.raises(DataError, match=r"absent.txt: expected a file of vectors, found no such"):
        read_vectors(tmp_path / "absent.txt")
    for content, expected in [
        (b"", "expected vectors, found none"),
        (b"just some words\n", "line 1: expected a word and its numbers"),
        (b"caf\xe9 1 2\n", "expected text in UTF-8"),
    ]:
        (tmp_path / "bad.txt").write_bytes(content)
        with pytest.raises(DataError, match=expected):
            read_vectors(tmp_path / "bad.txt")
    (tmp_path / "good.txt").write_text(LINES)
    with pytest.raises(DataError, match="of the vocabulary's words, found none"):
        read_vectors(tmp_path / "good.txt", {"bird"})


def test_an_embedding_starts_from_vectors(path):
    vocabulary = Vocabulary(["cat", "bird", "the"])
    vectors = read_vectors(path, vocabulary)
    table = vectors.table(vocabulary, seed=1)
    assert table.shape == (5, 3)
    assert table.dtype == np.float32
    np.testing.assert_array_equal(table[[0, 2, 4]], [[0, 0, 0], *ROWS[[2, 0]]])
    assert (table[[1, 3]] != 0).all()
    np.testing.assert_array_equal(table, vectors.table(vocabulary, seed=1))
    with pytest.raises(DataError, match="expected vectors of some of 1 words, found none"):
        vectors.table(Vocabulary(["bird"]))
