from __future__ import annotations

import gzip

import numpy as np
import pytest

from daskdl.data.text import Vocabulary, read_vectors
from daskdl.data.text import vectors as module
from daskdl.errors import DataError

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


def test_an_embedding_starts_from_them(path):
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
