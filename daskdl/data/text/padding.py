"""Padding: sequences of different lengths as one array and a mask, as narrow as can be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from daskdl.data.partition import Batch, texts_of
from daskdl.data.ragged import Ragged
from daskdl.data.text.vocabulary import PADDING, Vocabulary
from daskdl.errors import DataError, SettingsError


def pad(
    column: Ragged, length: int | None = None, *, multiple: int = 1, keep: str = "first"
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return sequences as an array, padded with zeros at the end, and the mask.

    Parameters
    ----------
    column : Ragged
    length : int, optional
        Longer sequences are cut to it, shorter ones padded; by default the longest length.
    multiple : int
        Without ``length`` the width is the next multiple of this, so that few widths occur.
    keep : "first" or "last"
        Which items of a cut sequence to keep.

    Returns
    -------
    padded : (n, length, ...)
    mask : bool (n, length)

    Examples
    --------
    >>> ids, mask = pad(Ragged.of([[5, 6, 7], [8]]), 2, keep="last")
    >>> ids
    array([[6, 7],
           [8, 0]])
    >>> mask
    array([[ True,  True],
           [ True, False]])
    """
    if multiple < 1 or (length is not None and length < 1):
        raise SettingsError(
            "pad: expected a length and a multiple of at least 1, found "
            f"{length!r} and {multiple!r}"
        )
    if keep not in ("first", "last"):
        raise SettingsError(f"pad, keep: expected first or last, found {keep!r}")
    if length is None:
        length = max(1, -(-int(column.lengths.max(initial=0)) // multiple)) * multiple
    if keep == "last":
        column = _ends(column, length)
    mask = np.arange(length) < column.lengths[:, None]
    return column.padded(length), mask


def _ends(column: Ragged, length: int) -> Ragged:
    """Return the last ``length`` items of each sequence."""
    lengths = column.lengths
    behind = np.repeat(column.offsets[1:], lengths) - np.arange(len(column.values))
    offsets = np.concatenate([[0], np.cumsum(np.minimum(lengths, length))])
    return Ragged(column.values[behind <= length], offsets)


def buckets(lengths: ArrayLike, bounds: Sequence[int]) -> list[tuple[int, NDArray[np.int64]]]:
    """Sort sequences by length into buckets, each to be padded to its bound alone.

    Parameters
    ----------
    lengths : int (n,)
        Lengths of the sequences.
    bounds : sequence of int
        Increasing widths. A sequence belongs to the first one that holds it; a longer one than all
        belongs to the last, and will be cut.

    Returns
    -------
    list of (bound, positions)
        The buckets that are not empty; positions, int64, are increasing.

    Examples
    --------
    >>> buckets([3, 20, 7, 99], [8, 32])
    [(8, array([0, 2])), (32, array([1, 3]))]
    """
    edges = np.asarray(bounds, np.int64)
    if not edges.size or edges[0] < 1 or (np.diff(edges) <= 0).any():
        raise SettingsError(f"buckets: expected increasing bounds from 1 on, found {list(bounds)}")
    which = np.minimum(np.searchsorted(edges, lengths), len(edges) - 1)
    by_edge = [(int(edge), np.flatnonzero(which == i)) for i, edge in enumerate(edges)]
    return [(edge, where) for edge, where in by_edge if len(where)]


def lengths_of(ids: ArrayLike) -> NDArray[np.int64]:
    """Return the length of each row of ids (n, T) without its padding, int64 (n,).

    Examples
    --------
    >>> lengths_of([[4, 0, 2, 0], [0, 0, 0, 0]])
    array([3, 0])
    """
    ids = np.asarray(ids)
    if ids.ndim != 2:
        raise DataError(
            f"lengths_of: expected ids of shape (n, T), found {ids.shape}"
            "; pad sequences by pad() first"
        )
    known = ids[:, ::-1] != PADDING
    lengths: NDArray[np.int64] = ids.shape[1] - known.argmax(1) if ids.shape[1] else known.sum(1)
    return np.where(known.any(1), lengths, 0)


@dataclass(frozen=True)
class Encode:
    """Texts of a batch as ids of one width, for ``SampleSet.map``.

    Parameters
    ----------
    vocabulary : Vocabulary
    length : int, optional
        Length of all sequences; by default the batch's longest, up to a multiple of 16.
    column : str
        Column of texts, or of sequences of tokens; ids (n, length) take its place.
    mask : str, optional
        Name of a new column that says where there are tokens, bool (n, length).
    keep : "first" or "last"
        Which tokens of a text that is too long to keep.

    Examples
    --------
    >>> from daskdl.data.text import Vocabulary
    >>> words = Vocabulary.build(["a good film", "a bad film"])
    >>> Encode(words, length=4)({"x": ["a good film"]})["x"]
    array([[2, 5, 3, 0]], dtype=int32)
    """

    vocabulary: Vocabulary
    length: int | None = None
    column: str = "x"
    mask: str | None = None
    keep: str = "first"

    def __call__(self, batch: Batch) -> Batch:
        """Return the batch with ids in the place of texts."""
        column = self.vocabulary.encode_all(texts_of(batch, self.column, "Encode"))
        ids, mask = pad(column, self.length, multiple=16, keep=self.keep)
        return {**batch, self.column: ids} | ({self.mask: mask} if self.mask else {})
