"""Tokens: convert texts of samples to ids, for fits of encoders."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from daskdl.data.partition import Batch, texts_of
from daskdl.data.ragged import Ragged
from daskdl.errors import DataError

#: Halves of characters, which no tokenizer takes; JSON and errors="surrogateescape" make them.
HALVES = re.compile("[\ud800-\udfff]")
Ids = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True)
class Tokens:
    """Function for ``SampleSet.map_batches`` that converts texts to ids of different lengths.

    Parameters
    ----------
    tokenizer : tokenizers.Tokenizer
        The tokenizer of a `TextModel`.
    column : str
        Column of texts, or of pairs of texts; a Ragged column of ids replaces it.
    second : int
        Number added to the ids of a pair's second text, as in `TextModel`.

    Examples
    --------
    >>> samples = samples.map_batches(Tokens(model.tokenizer))  # doctest: +SKIP
    """

    tokenizer: Any = field(repr=False)
    column: str = "x"
    second: int = 0

    def __call__(self, batch: Batch) -> Batch:
        """Return the batch with ids in place of texts.

        Raises
        ------
        DataError
            Without the column, or when an element is no text.
        """
        made = windows_of(texts_of(batch, self.column, "Tokens"), self.tokenizer, self.second)
        return {**batch, self.column: Ragged.of([windows[0] for windows in made])}


def windows_of(texts: Any, tokenizer: Any, second: int = 0) -> list[list[Ids]]:
    """Return the ids of each text, or pair, in windows of the tokenizer's longest input.

    Raises DataError when an element is no text.
    """
    texts = [
        text if isinstance(text, str) and not HALVES.search(text) else _pair(i, text)
        for i, text in enumerate(texts)
    ]
    return [
        [
            np.array(window.ids, np.int64) + second * np.array(window.type_ids, np.int64)
            for window in (made, *made.overflowing)
        ]
        for made in tokenizer.encode_batch(texts)
    ]


def _pair(i: int, texts: Any) -> tuple[str, str]:
    pair = isinstance(texts, (tuple, list, np.ndarray)) and len(texts) == 2
    if pair and all(isinstance(text, str) and not HALVES.search(text) for text in texts):
        return texts[0], texts[1]
    raise DataError(
        f"text {i}: expected a str or a pair of them, found {texts!r:.60}; leave missing ones "
        "out, and replace halves of characters (surrogates)"
    )
