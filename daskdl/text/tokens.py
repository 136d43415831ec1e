"""Tokens: texts of samples as ids, for fits of encoders."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from daskdl.data.partition import Batch
from daskdl.data.ragged import Ragged
from daskdl.errors import DataError

Ids = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True)
class Tokens:
    """Texts of a batch as ids of different lengths, for ``SampleSet.map_batches``.

    Parameters
    ----------
    tokenizer : tokenizers.Tokenizer
        Of a `TextModel`.
    column : str
        Of texts; a Ragged column of ids takes its place.

    Examples
    --------
    >>> samples = samples.map_batches(Tokens(model.tokenizer))  # doctest: +SKIP
    """

    tokenizer: Any = field(repr=False)
    column: str = "x"

    def __call__(self, batch: Batch) -> Batch:
        """Return the batch with ids in the place of texts.

        Raises
        ------
        DataError
            When one of them is no text.
        """
        return {**batch, self.column: Ragged.of(ids_of(batch[self.column], self.tokenizer))}


def ids_of(texts: Any, tokenizer: Any) -> list[Ids]:
    """Return the ids of each text, of long ones their beginning.

    Raises
    ------
    DataError
        When one of them is no text.
    """
    return [ids[0] for ids in windows_of(texts, tokenizer)]


def windows_of(texts: Any, tokenizer: Any) -> list[list[Ids]]:
    """Return the ids of each text in windows of the length that the tokenizer cuts to.

    Raises
    ------
    DataError
        When one of them is no text.
    """
    texts = list(texts)
    wrong = next((i for i, text in enumerate(texts) if not isinstance(text, str)), None)
    if wrong is not None:
        raise DataError(
            f"text {wrong}: expected a str, found {texts[wrong]!r:.60}; leave missing ones out"
        )
    return [
        [np.array(window.ids, np.int64) for window in (made, *made.overflowing)]
        for made in tokenizer.encode_batch(texts)
    ]
