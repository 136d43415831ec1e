"""Vocabulary: words by number, and texts as numbers."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.data.ragged import Ragged
from daskdl.data.text.tokens import Tokenize, Tokenizer, count_words, tokens_of
from daskdl.errors import DataError, SettingsError

Ids = NDArray[np.int32]

PADDING, UNKNOWN = 0, 1
#: Texts of the first two numbers; no tokenizer here makes such tokens.
SPECIAL = ("<padding>", "<unknown>")
FORMAT = "daskdl-vocabulary-1"


class Vocabulary:
    """Words by number: 0 is padding, 1 an unknown word, the words of a language from 2 on.

    Parameters
    ----------
    words : sequence of str
        Words in the order of their numbers, without the first two.
    tokenizer : callable
        From a text to its tokens.

    Examples
    --------
    >>> vocabulary = Vocabulary.build(["the cat", "the dog", "a cat"])
    >>> vocabulary.words
    ('<padding>', '<unknown>', 'cat', 'the', 'a', 'dog')
    >>> vocabulary.encode("the bird")
    array([3, 1], dtype=int32)
    """

    def __init__(self, words: Iterable[str], tokenizer: Tokenize | None = None) -> None:
        self.words = (*SPECIAL, *words)
        self.tokenizer = Tokenizer() if tokenizer is None else tokenizer
        if len(self._ids) != len(self.words) - len(SPECIAL):
            twice = [word for word, n in Counter(self.words).items() if n > 1]
            raise DataError(f"Vocabulary: expected each word once, found {twice[0]!r} more often")

    @classmethod
    def build(
        cls,
        texts: Any,
        tokenizer: Tokenize | None = None,
        *,
        minimum: int = 1,
        size: int | None = None,
        column: str = "x",
    ) -> Vocabulary:
        """Count the words of texts; number them by count, equal ones by the alphabet.

        Parameters
        ----------
        texts : dask Bag, SampleSet, or iterable
            Texts, or sequences of tokens. They are counted where they are, see
            :func:`daskdl.data.text.tokens.count_words`; only the counts come here.
        tokenizer : callable, optional
            A :class:`Tokenizer` by default.
        minimum : int
            Least count of a word.
        size : int, optional
            Largest number of words, without padding and unknown.
        column : str
            Column of a SampleSet.

        Raises
        ------
        DataError
            When no word occurs often enough, or a value is not a text.
        """
        if minimum < 1 or (size is not None and size < 1):
            raise SettingsError(
                "Vocabulary.build: expected minimum and size of at least 1, found "
                f"{minimum!r} and {size!r}"
            )
        tokenizer = Tokenizer() if tokenizer is None else tokenizer
        counts = count_words(texts, tokenizer, column)
        words = [word for word, n in counts.items() if n >= minimum]
        if not words:
            raise DataError(
                f"Vocabulary.build: expected words that occur at least {minimum} times, found none "
                f"among {len(counts)}; lower minimum"
            )
        words.sort(key=lambda word: (-counts[word], word))
        return cls(words[:size], tokenizer)

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {word: i for i, word in enumerate(self.words) if i >= len(SPECIAL)}

    def __getstate__(self) -> dict[str, Any]:
        return {"words": self.words, "tokenizer": self.tokenizer}

    def __len__(self) -> int:
        """Return the number of ids, the rows of an embedding."""
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self._ids

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Vocabulary):
            return NotImplemented
        return (self.words, self.tokenizer) == (other.words, other.tokenizer)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        some = ", ".join(self.words[len(SPECIAL) :][:5])
        more = ", ..." if len(self) > len(SPECIAL) + 5 else ""
        return f"Vocabulary({len(self):,} numbers: {some}{more})"

    # --- texts as numbers

    def encode(self, text: str | Sequence[str]) -> Ids:
        """Return the numbers of a text's tokens, or of tokens; int32 (n,)."""
        return self.encode_all([text]).values

    def encode_all(self, texts: Iterable[str | Sequence[str]]) -> Ragged:
        """Return the numbers of the tokens of each of several texts.

        Raises
        ------
        DataError
            For a value, with its place, that is neither a text nor a sequence of tokens.
        """
        get, ids, ends = self._ids.get, [], [0]
        for i, text in enumerate(texts):
            ids += [get(token, UNKNOWN) for token in tokens_of(text, self.tokenizer, i)]
            ends.append(len(ids))
        return Ragged(np.array(ids, np.int32), np.array(ends, np.int64))

    def decode(self, ids: Iterable[int]) -> list[str]:
        """Return the words of these numbers, without padding."""
        numbers = [int(i) for i in ids]
        wrong = [i for i in numbers if not 0 <= i < len(self)]
        if wrong:
            raise DataError(
                f"Vocabulary.decode: expected numbers from 0 to {len(self) - 1}, found {wrong[0]}"
                "; decode ids of this vocabulary alone"
            )
        return [self.words[i] for i in numbers if i != PADDING]

    # --- in and out

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it as JSON to a path or a URL that fsspec knows.

        Raises
        ------
        DataError
            When the tokenizer is not a :class:`Tokenizer`; only that is plain data.
        """
        import fsspec

        if not isinstance(self.tokenizer, Tokenizer):
            raise DataError(
                "Vocabulary.save: expected a Tokenizer, found "
                f"{self.tokenizer!r}, which a file cannot keep"
            )
        content = {
            "format": FORMAT,
            "tokenizer": asdict(self.tokenizer),
            "words": self.words[len(SPECIAL) :],
        }
        with fsspec.open(os.fspath(path), "w", encoding="utf-8") as file:
            json.dump(content, file, ensure_ascii=False)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Vocabulary:
        """Read a file that :meth:`save` wrote.

        Raises
        ------
        DataError
            When the file is missing, or something else.
        """
        import fsspec

        try:
            with fsspec.open(os.fspath(path), "r", encoding="utf-8") as file:
                content = json.load(file)
            if content["format"] != FORMAT:
                raise ValueError(f"format {content['format']!r}")
            return cls(content["words"], Tokenizer(**content["tokenizer"]))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DataError(
                f"{path}: expected a vocabulary of format {FORMAT}, found something else "
                f"({type(error).__name__}: {error})"
            ) from error
