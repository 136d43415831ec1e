"""Tokenizer: the words, numbers and marks of a text, in their order."""

from __future__ import annotations

import re
from dataclasses import dataclass

from daskdl.errors import DataError

_WORDS = re.compile(r"\w+(?:['’]\w+)*")
_WORDS_AND_MARKS = re.compile(r"\w+(?:['’]\w+)*|[^\w\s]")
_TAG = re.compile(r"</?[A-Za-z][^<>]*>")


@dataclass(frozen=True)
class Tokenizer:
    """Cuts a text into tokens.

    A word is a run of letters, digits and underscores of any script, with apostrophes inside it
    (``don't``); a mark is any other character that is not a space, each by itself. A language
    without spaces needs a tokenizer of its own: any function from a text to a list of tokens will
    do wherever one of these does.

    Parameters
    ----------
    lower : bool
        Whether case is ignored.
    marks : bool
        Whether marks are tokens too.
    tags : bool
        Whether what looks like a tag of HTML, such as ``<br />``, is kept; otherwise it counts as
        a space.

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
    """Return a text of so many letters at most, for an error."""
    return text if len(text) <= most else f"{text[: most - 3]}..."
