"""Pre-trained word vectors in GloVe's text format."""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from itertools import takewhile

import numpy as np
from numpy.typing import NDArray

from daskdl.data.text.tokens import clipped
from daskdl.data.text.vocabulary import PADDING, SPECIAL, Vocabulary
from daskdl.errors import DataError

#: Lines whose numbers are read at once.
AT_ONCE = 4096


@dataclass(frozen=True)
class Vectors:
    """Words and a vector of each.

    Parameters
    ----------
    words : tuple of str
        Unique words.
    values : float32 (n, features)

    Examples
    --------
    >>> from daskdl.data.text import Vocabulary
    >>> words = Vocabulary.build(["good bad good bad"])
    >>> vectors = Vectors(("good", "bad"), np.array([[1, 0], [-1, 0.5]], np.float32))
    >>> vectors.table(words).shape
    (4, 2)
    """

    words: tuple[str, ...]
    values: NDArray[np.float32]

    def table(self, vocabulary: Vocabulary, seed: int = 0) -> NDArray[np.float32]:
        """Return first weights for an embedding of a vocabulary.

        Words without a vector, and the unknown word, get normal random numbers with the mean and
        the spread of each feature over the words with one. Padding gets zeros.

        Returns
        -------
        float32 (len(vocabulary), features)

        Raises
        ------
        DataError
            When no word of the vocabulary has a vector.
        """
        ids = {word: i for i, word in enumerate(self.words)}
        names = vocabulary.words[len(SPECIAL) :]
        places = np.array([ids.get(word, -1) for word in names], np.int64)
        have = np.flatnonzero(places >= 0)
        if not have.size:
            raise DataError(
                f"Vectors.table: expected vectors of some of {len(names):,} words, found none; see "
                "whether the vocabulary was made in lower case as the vectors were"
            )
        known = self.values[places[have]]
        rng = np.random.default_rng(seed)
        table = rng.normal(known.mean(0), known.std(0), (len(vocabulary), known.shape[1]))
        table[PADDING] = 0
        table[have + len(SPECIAL)] = known
        return table.astype(np.float32)


def read_vectors(path: str | os.PathLike[str], vocabulary: Container[str] | None = None) -> Vectors:
    """Read a file of lines ``word number number ...``.

    A word may contain spaces, as some of GloVe's do: the first line says how many numbers each
    line has. A first line of two whole numbers, as in word2vec's text format, is skipped. If a word
    occurs twice, its first vector counts. Lines of unwanted words with enough fields are skipped;
    their numbers are not checked.

    J. Pennington, R. Socher and C. Manning, GloVe: Global Vectors for Word Representation, 2014.

    Parameters
    ----------
    path : path or URL
        A text file in UTF-8; its suffix (``.gz``, ``.zip``) says if it is compressed.
    vocabulary : container of str, optional
        Words to read, such as a :class:`Vocabulary`; by default all.

    Raises
    ------
    DataError
        For a line unlike the first one, with its number; and for a file that is missing or has none
        of the words.

    Examples
    --------
    >>> from pathlib import Path
    >>> _ = Path("vectors.txt").write_text("good 1 0.5")
    >>> vectors = read_vectors("vectors.txt")
    >>> vectors.words, vectors.values
    (('good',), array([[1. , 0.5]], dtype=float32))
    """
    name, words, blocks = os.fspath(path), dict[str, None](), list[NDArray[np.float32]]()
    lines: list[tuple[int, list[str]]] = []
    features = 0
    for number, line in _lines(name):
        if number == 1:
            rest = line.split(" ")[1:]
            if len(rest) == 1 and line.replace(" ", "").isdigit():
                continue
        if not features:
            features = _features(line)
            if not features:
                raise _bad(name, number, line, "a word and its numbers")
        word, fields = _split(line, features)
        if len(fields) < features or (" " in word and _is_number(word.rsplit(" ", 1)[1])):
            raise _bad(name, number, line, f"a word and {features} numbers, as before")
        if word in words or (vocabulary is not None and word not in vocabulary):
            continue
        words[word] = None
        lines.append((number, fields))
        if len(lines) == AT_ONCE:
            blocks.append(_numbers(name, lines, features))
            lines = []
    if lines:
        blocks.append(_numbers(name, lines, features))
    if not blocks:
        which = "" if vocabulary is None else " of the vocabulary's words"
        raise DataError(f"{name}: expected vectors{which}, found none")
    return Vectors(tuple(words), np.concatenate(blocks))


def _lines(path: str) -> Iterator[tuple[int, str]]:
    import fsspec

    try:
        with fsspec.open(path, "rb", compression="infer") as file:
            for number, line in enumerate(file, 1):
                text = line.decode("utf-8").rstrip("\r\n ")
                if text:
                    yield number, text
    except FileNotFoundError as error:
        raise DataError(
            f"{path}: expected a file of vectors, found no such file"
            "; give the path of an unpacked file, such as glove.6B.100d.txt"
        ) from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: expected text in UTF-8, found other bytes ({error})") from error


def _features(line: str) -> int:
    """Count the numbers at the end of a line that begins with a word."""
    return sum(1 for _ in takewhile(_is_number, reversed(line.split(" ")[1:])))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _split(line: str, features: int) -> tuple[str, list[str]]:
    """Return the word, which may contain spaces, and the fields of its numbers."""
    fields = line.split(" ")
    at = max(1, len(fields) - features)
    return " ".join(fields[:at]), fields[at:]


def _numbers(
    path: str, lines: Iterable[tuple[int, list[str]]], features: int
) -> NDArray[np.float32]:
    """Return the numbers of several lines; a DataError for the first bad one."""
    rows = []
    for number, fields in lines:
        try:
            row = np.fromiter(map(float, fields), np.float32, features)
        except ValueError:
            row = np.full(1, np.nan, np.float32)
        if not np.isfinite(row).all():
            raise _bad(path, number, " ".join(fields), f"{features} finite numbers")
        rows.append(row)
    return np.stack(rows)


def _bad(path: str, number: int, text: str, expected: str) -> DataError:
    return DataError(
        f"{path}, line {number}: expected {expected}, found {clipped(text)!r}; see whether the "
        "file is whole, and one of GloVe's text format"
    )
