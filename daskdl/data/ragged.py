"""Ragged: a column of sequences of different lengths, as values and offsets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from daskdl.errors import DataError, ShapeError

#: Kinds of dtypes that numpy joins without a loss.
_KINDS = {**dict.fromkeys("biufc", "number"), **dict.fromkeys("SUT", "text")}

#: Advice of errors about sequences of different lengths.
PAD = "pad them, as in SampleSet.map(lambda batch: {**batch, 'x': batch['x'].padded(100)})"


@dataclass(frozen=True, eq=False)
class Ragged:
    """Sequences of different lengths, one after the other, as Arrow holds lists.

    It is indexed along its first axis like an array: ``column[3]`` is a sequence, ``column[2:5]``
    and ``column[[4, 0]]`` are columns.

    Parameters
    ----------
    values : (total, ...)
        The items of all sequences.
    offsets : int64 (n + 1,)
        Sequence ``i`` is ``values[offsets[i] : offsets[i + 1]]``.

    Examples
    --------
    >>> words = Ragged.of([[3, 1, 4], [], [1, 5]])
    >>> words[2]
    array([1, 5])
    >>> words.padded()
    array([[3, 1, 4],
           [0, 0, 0],
           [1, 5, 0]])
    """

    values: NDArray[Any]
    offsets: NDArray[np.int64]

    @classmethod
    def of(cls, sequences: Sequence[ArrayLike]) -> Ragged:
        """Make a column of sequences whose items have one shape and dtype; empty ones fit any."""
        arrays = [np.asarray(sequence) for sequence in sequences]
        if any(a.ndim == 0 for a in arrays):
            raise ShapeError("Ragged.of: expected sequences, found a single value")
        some = [a for a in arrays if len(a)]
        shapes = {a.shape[1:] for a in some}
        if len(shapes) > 1:
            raise ShapeError(
                f"Ragged.of: expected items of one shape, found {' and '.join(map(str, shapes))}"
                "; let sequences differ in their first axis alone"
            )
        values = np.concatenate(some or arrays[:1] or [np.empty(0)])
        return cls(values, np.cumsum([0, *map(len, arrays)], dtype=np.int64))

    @classmethod
    def from_array(cls, array: NDArray[Any] | Ragged) -> Ragged:
        """Return an array (n, length, ...) as sequences of one length; a Ragged unchanged."""
        if isinstance(array, Ragged):
            return array
        n, length = array.shape[:2]
        return cls(array.reshape(n * length, *array.shape[2:]), np.arange(n + 1) * length)

    @property
    def nbytes(self) -> int:
        """Bytes of the items and the offsets."""
        return self.values.nbytes + self.offsets.nbytes

    @property
    def dtype(self) -> np.dtype[Any]:
        """Dtype of the items."""
        return self.values.dtype

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Items of each sequence, int64 (n,)."""
        return np.diff(self.offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __iter__(self) -> Iterator[NDArray[Any]]:
        return (self.values[a:b] for a, b in zip(self.offsets, self.offsets[1:], strict=False))

    def __getitem__(self, which: Any) -> Any:
        if isinstance(which, int | np.integer):
            i = range(len(self))[which]
            return self.values[self.offsets[i] : self.offsets[i + 1]]
        if isinstance(which, slice) and which.step in (None, 1):
            a, b, _ = which.indices(len(self))
            offsets = self.offsets[a : max(a, b) + 1]
            return Ragged(self.values[offsets[0] : offsets[-1]], offsets - offsets[0])
        chosen = np.arange(len(self))[which]
        lengths = self.lengths[chosen]
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        # Where each item comes from: the place in its sequence, behind that sequence's beginning.
        items = np.arange(offsets[-1]) + np.repeat(self.offsets[chosen] - offsets[:-1], lengths)
        return Ragged(self.values[items], offsets)

    def padded(self, length: int | None = None, value: Any = 0) -> NDArray[Any]:
        """Return all as one array (n, length, ...).

        Parameters
        ----------
        length : int, optional
            By default the longest length; longer sequences are cut.
        value :
            Fills shorter sequences.
        """
        lengths = self.lengths
        if length is None:
            length = int(lengths.max(initial=0))
        result = np.full((len(self), length, *self.values.shape[1:]), value, self.dtype)
        inside = np.arange(length) < lengths[:, None]
        within = np.arange(len(self.values)) - np.repeat(self.offsets[:-1], lengths) < length
        result[inside] = self.values[within]
        return result


def common_dtype(*dtypes: np.dtype[Any]) -> np.dtype[Any]:
    """Return a dtype for values of all; a DataError for numbers together with texts or times.

    numpy would make texts of such numbers, or lengths of time.
    """
    kinds = {_KINDS.get(dtype.kind, dtype.kind) for dtype in dtypes} - {"O"}
    if len(kinds) > 1:
        raise DataError(
            "SampleSet: expected values of one kind in all partitions, found "
            f"{' and '.join(sorted(map(str, dtypes)))}; make them alike where they come from"
        )
    return np.result_type(*dtypes)


def concatenated(columns: Sequence[Any]) -> Any:
    """Join columns; the result is ragged if one of them is, or if widths differ."""
    columns = [c for c in columns if len(c)] or columns[:1]  # an empty one may not know its dtype
    common_dtype(
        *({c.dtype for c in columns if getattr(c, "values", c).size} or [columns[0].dtype])
    )
    ragged = any(isinstance(column, Ragged) for column in columns)
    if not ragged and len({column.shape[1:2] for column in columns}) == 1:
        return np.concatenate(columns)
    columns = list(map(Ragged.from_array, columns))
    values = [c.values for c in columns]
    filled = [v for v in values if len(v)] or values[:1]
    lengths = np.concatenate([c.lengths for c in columns])
    return Ragged(np.concatenate(filled), np.concatenate([[0], np.cumsum(lengths)]))


def stacked(values: Sequence[Any], where: str = "samples") -> Any:
    """Return one column of the values of many samples; errors begin with ``where``.

    Strings become NumPy's variable-width strings if none is missing; other objects do not change.
    Arrays of one shape are stacked; arrays that differ only in their first axis become `Ragged`;
    others are a ShapeError.
    """
    texts = [isinstance(value, str) for value in values]
    if all(texts):
        return np.array(values, np.dtypes.StringDType())
    arrays = [np.asarray(value) for value in values]
    # Of a missing text numpy would make the word "None" or "nan".
    if any(texts) or isinstance(values[0], bytes) or arrays[0].dtype.kind == "O":
        column = np.empty(len(values), object)
        column[:] = values
        return column
    shapes = {a.shape for a in arrays}
    if len(shapes) == 1:
        return np.stack(arrays)
    if all(shapes) and len({shape[1:] for shape in shapes if shape[0]}) == 1:
        return Ragged.of(arrays)
    raise ShapeError(
        f"{where}: expected values of one shape, or sequences that differ in length alone, found "
        f"shapes {' and '.join(map(str, sorted(shapes)[:4]))}"
        "; fill missing ones, and pad or crop all to one shape first"
    )
