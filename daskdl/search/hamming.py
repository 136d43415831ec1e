"""HammingIndex: nearest packed binary codes, codes within a radius, and duplicates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from daskdl.data.ragged import Ragged
from daskdl.errors import DataError, SettingsError, ShapeError
from daskdl.kernels.search import duplicates as pairs
from daskdl.kernels.search import hamming as kernels
from daskdl.masked import unmasked
from daskdl.search.parted import Parted

if TYPE_CHECKING:
    import dask.array as da

Codes = NDArray[np.uint8]
Numbers = NDArray[np.int64]


def packed(features: ArrayLike) -> Codes:
    """Return the signs of features (n, bits) as packed codes, uint8 (n, bits / 8).

    A bit is 1 if the feature is positive; the first feature is the highest bit, as in
    :func:`numpy.packbits`.

    Examples
    --------
    >>> packed(np.array([[1, -1, 1, 1, -1, -1, -1, 2]]))
    array([[177]], dtype=uint8)
    """
    values = np.asarray(unmasked("packed", features))
    if np.isnan(values).any():
        raise DataError("packed: expected numbers, found NaN or masked ones; leave such rows out")
    return np.packbits(values > 0, axis=-1)


class HammingIndex(Parted):
    """Exact search by Hamming distance; it compares a query with all codes.

    Parameters
    ----------
    codes : uint8 (n, bytes), numpy array or dask Array
        Packed by :func:`packed` or :func:`numpy.packbits`. Codes of a dask Array stay on the
        cluster, in the chunks of its first axis, and are searched in parallel.

    Raises
    ------
    ShapeError
        When the codes have another dtype or shape.

    Examples
    --------
    >>> index = HammingIndex(packed([[1, 1, 1, 1], [-1, -1, 1, 1], [-1, -1, -1, -1]]))
    >>> distances, numbers = index.search(packed([[-1, 1, 1, 1]]), k=2)
    >>> numbers
    array([[0, 1]])
    >>> distances
    array([[1, 1]])
    """

    def __init__(self, codes: Codes | da.Array) -> None:
        _check("codes", codes)
        self.bytes = int(codes.shape[1])
        super().__init__(codes, _planes, _length)

    def __repr__(self) -> str:
        return f"HammingIndex({len(self):,} codes of {8 * self.bytes} bits, {self._where})"

    def search(self, queries: Codes, k: int = 10) -> tuple[Numbers, Numbers]:
        """Return the distances and the numbers of the nearest codes.

        Parameters
        ----------
        queries : uint8 (q, bytes)
        k : int
            Number of codes for each query; all if there are fewer.

        Returns
        -------
        distances : int64 (q, k)
            Numbers of different bits, the nearest code first.
        numbers : int64 (q, k)
            Numbers of codes, from 0; for equal distances the smaller first.

        Raises
        ------
        ShapeError
            When the queries have another number of bytes.
        SettingsError
            When ``k`` is below 1.
        """
        if k < 1:
            raise SettingsError(f"HammingIndex.search: expected k of at least 1, found {k!r}")
        asked = self._asked("search", queries)
        by_block = self._each(kernels.nearest, [(asked, min(k, n)) for n in self._lengths])
        return self._least(by_block, k)

    def within(self, queries: Codes, radius: int) -> tuple[Ragged, Ragged]:
        """Return the distances and numbers of all codes within a radius, ordered by number.

        Parameters
        ----------
        queries : uint8 (q, bytes)
        radius : int
            Largest number of different bits.

        Returns
        -------
        distances, numbers : Ragged (q) of (found,), int64
        """
        asked = self._asked("within", queries)
        by_block = self._each(kernels.within, [(asked, radius)] * len(self._blocks))
        distances, numbers, start = [], [], 0
        for (offsets, number, distance), length in zip(by_block, self._lengths, strict=True):
            numbers.append(Ragged(number + start, offsets))
            distances.append(Ragged(distance, offsets))
            start += length
        return _side_by_side(distances), _side_by_side(numbers)

    def duplicates(self, radius: int = 0, most: int = 10_000_000) -> tuple[Numbers, Numbers]:
        """Return all pairs of codes that differ in at most ``radius`` bits.

        The bits are split into ``radius + 1`` parts; two codes this near have at least one equal
        part, and only such codes are compared. This is fast while a part has more bits than log2 of
        the number of codes. Codes of a dask Array are collected in this process.

        Parameters
        ----------
        radius : int
        most : int
            Largest number of pairs.

        Returns
        -------
        pairs : int64 (m, 2)
            Numbers of codes, the smaller first; sorted.
        distances : int64 (m,)

        Raises
        ------
        DataError
            When there are more pairs.
        """
        import dask

        blocks = self._blocks if self._threads is None else dask.compute(*self._blocks)
        whole = blocks[0] if len(blocks) == 1 else np.concatenate(blocks, 1)
        count = pairs.count(whole, 8 * self.bytes, radius)
        if count > most:
            raise DataError(
                f"HammingIndex.duplicates: expected at most {most:,} pairs within {radius} bits, "
                f"found {count:,}; take a smaller radius, or search for frequent codes "
                "by within()"
            )
        return pairs.pairs(whole, 8 * self.bytes, radius)

    def _asked(self, method: str, queries: Codes) -> kernels.Words:
        queries = np.asarray(unmasked("HammingIndex", queries))
        _check(f"{method}: queries", queries)
        if queries.shape[1] != self.bytes:
            raise ShapeError(
                f"HammingIndex.{method}: expected queries of {self.bytes} bytes as the codes, found"
                f" {queries.shape[1]}; make both by the same network"
            )
        return kernels.planes(queries)


def _check(name: str, codes: Any) -> None:
    if getattr(codes, "dtype", None) != np.uint8 or codes.ndim != 2 or not codes.shape[1]:
        raise ShapeError(
            f"HammingIndex: {name}: expected packed codes, uint8 (n, bytes), found "
            f"{getattr(codes, 'dtype', type(codes).__name__)} {np.shape(codes)}"
            "; daskdl.search.packed(features) makes them of features"
        )


def _planes(block: Codes) -> kernels.Words:
    return kernels.planes(np.ascontiguousarray(unmasked("HammingIndex", block)))


def _length(block: kernels.Words) -> int:
    return block.shape[1]


def _side_by_side(parts: list[Ragged]) -> Ragged:
    """Join ragged columns of one length: concatenate their sequences row by row."""
    if len(parts) == 1:
        return parts[0]
    return Ragged.of([np.concatenate(rows) for rows in zip(*parts, strict=True)])
