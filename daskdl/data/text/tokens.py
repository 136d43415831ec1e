"""Tokens: the words, numbers and marks of a text, in their order, and how often each occurs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from daskdl.cluster.current import current_client
from daskdl.data.functions import in_stretches
from daskdl.data.on_workers.tasks import on_each
from daskdl.data.partition import texts_of
from daskdl.data.samples import SampleSet
from daskdl.errors import DataError, SettingsError

if TYPE_CHECKING:
    from daskdl.data.partition import Partition


Tokenize = Callable[[str], Sequence[str]]

#: Counts that one task adds up.
SPLIT_EVERY = 8

_WORDS = re.compile(r"\w+(?:['’]\w+)*")
_WORDS_AND_MARKS = re.compile(r"\w+(?:['’]\w+)*|[^\w\s]")
_TAG = re.compile(r"</?[A-Za-z][^<>]*>")


@dataclass(frozen=True)
class Tokenizer:
    """Cuts a text into tokens.

    A word is a run of letters, digits and underscores of any script, with apostrophes inside it
    (``don't``). Any other character that is not a space is a mark. A language without spaces needs
    another tokenizer: any function from a text to a list of tokens works.

    Parameters
    ----------
    lower : bool
        Whether case is ignored.
    marks : bool
        Whether marks are tokens too.
    tags : bool
        Whether to keep tags of HTML, such as ``<br />``; otherwise they count as spaces.

    Examples
    --------
    >>> Tokenizer()("Don't stop: 10 tapes!")
    ["don't", 'stop', ':', '10', 'tapes', '!']
    >>> Tokenizer(marks=False, lower=False)("Don't stop<br />now")
    ["Don't", 'stop', 'now']
    """

    lower: bool = True
    marks: bool = True
    tags: bool = False

    def __call__(self, text: str) -> list[str]:
        """Return the tokens of a text.

        Raises
        ------
        DataError
            When it is not a text.
        """
        if not isinstance(text, str):
            raise DataError(
                f"Tokenizer: expected a text, found {type(text).__name__} {clipped(repr(text), 40)}"
                "; decode bytes by .decode('utf-8') first"
            )
        if self.lower:
            text = text.lower()
        if not self.tags and "<" in text:
            text = _TAG.sub(" ", text)
        return (_WORDS_AND_MARKS if self.marks else _WORDS).findall(text)


def clipped(text: str, most: int = 60) -> str:
    """Return the first ``most`` letters of a text, for an error."""
    return text if len(text) <= most else f"{text[: most - 3]}..."


def count_words(texts: Any, tokenize: Tokenize, column: str = "x") -> Counter[str]:
    """Count how often each token occurs in a dask Bag, a SampleSet's column, or a list.

    The samples are texts, or sequences of tokens. The workers of the current client count them;
    without a client Dask's configured scheduler counts a Bag, and this process everything else.
    Raises a DataError for other values.
    """
    if isinstance(texts, SampleSet):
        count = partial(_count_partition, functions=texts.functions, tokenize=tokenize, at=column)
        return _merged(on_each(texts.recipes, count, None))
    if hasattr(texts, "reduction"):
        count = partial(count_in, tokenize=tokenize)
        total = texts.reduction(count, _merged, split_every=SPLIT_EVERY)
        result: Counter[str] = total.compute(**_scheduler())
        return result
    if isinstance(texts, str | bytes) or not isinstance(texts, Iterable):
        raise SettingsError(
            "texts: expected a dask Bag, a SampleSet or a list of texts, found "
            f"{type(texts).__name__}; read files by dask.bag.read_text"
        )
    return count_in(texts, tokenize)


def count_in(texts: Iterable[Any], tokenize: Tokenize) -> Counter[str]:
    """Count how often each token occurs in texts, or sequences of tokens, in memory."""
    counter: Counter[str] = Counter()
    for i, text in enumerate(texts):
        counter.update(tokens_of(text, tokenize, i))
    return counter


def tokens_of(text: Any, tokenize: Tokenize, number: int) -> Sequence[str]:
    """Return the tokens of a text, or of a sequence that has them already."""
    if isinstance(text, str):
        return tokenize(text)
    if isinstance(text, list | tuple | np.ndarray) and all(isinstance(t, str) for t in text):
        return text  # type: ignore[return-value]
    raise DataError(
        f"text {number}: expected a text or a sequence of tokens, found {type(text).__name__} "
        f"{clipped(repr(text))}"
    )


def _count_partition(
    partition: Partition,
    number: int,
    *,
    functions: Sequence[Callable[..., Any]],
    tokenize: Tokenize,
    at: str,
) -> Counter[str]:
    counter: Counter[str] = Counter()
    for batch in in_stretches(partition, functions, "count", number) if len(partition) else ():
        counter.update(count_in(texts_of(batch, at, "texts"), tokenize))
    return counter


def _merged(counters: Iterable[Counter[str]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for counter in counters:
        total.update(counter)
    return total


def _scheduler() -> dict[str, str]:
    """Return the scheduler for a Bag; Dask's default would be a pool of processes."""
    import dask

    alone = current_client() is None and dask.config.get("scheduler", None) is None
    return {"scheduler": "synchronous"} if alone else {}
