"""HammingIndex: the nearest of packed binary codes, those within a radius, and duplicates."""

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

    A bit is 1 where the feature is positive; the first feature is the highest bit, as
    :func:`numpy.packbits` has it.

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
    """Codes that can be searched by Hamming distance: exactly, by looking at all of them.

    Parameters
    ----------
    codes : uint8 (n, bytes), numpy array or dask Array
        Packed, as :func:`packed` and :func:`numpy.packbits` make them. The codes of a dask Array
        stay on the cluster, in the chunks of its first axis, which search side by side.

    Raises
    ------
    ShapeError
        When these are no such codes.

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
            How many for each query; all where there are fewer codes.

        Returns
        -------
        distances : int64 (q, k)
            Bits that differ, the nearest first.
        numbers : int64 (q, k)
            Of codes, from 0; of equal distances the smaller first.

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
        """Return the distances and numbers of all codes no farther than a radius, by their numbers.

        Parameters
        ----------
        queries : uint8 (q, bytes)
        radius : int
            Bits that may differ.

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
        """Return all pairs of codes that differ in no more bits than a radius.

        Only codes are compared that have a part alike, without which they could not be so near; so
        this is quick while ``radius + 1`` parts of the bits are longer than log2 of the number of
        codes. Codes of a dask Array are brought together here for it.

        Parameters
        ----------
        radius : int
        most : int
            Of pairs.

        Returns
        -------
        pairs : int64 (m, 2)
            Numbers of codes, the smaller first; in their order.
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
                f"found {count:,}; take a smaller radius, or search for the codes of which there "
                "are many by within()"
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


def _check(what: str, codes: Any) -> None:
    if getattr(codes, "dtype", None) != np.uint8 or codes.ndim != 2 or not codes.shape[1]:
        raise ShapeError(
            f"HammingIndex: {what}: expected packed codes, uint8 (n, bytes), found "
            f"{getattr(codes, 'dtype', type(codes).__name__)} {np.shape(codes)}"
            "; daskdl.search.packed(features) makes them of features"
        )


def _planes(block: Codes) -> kernels.Words:
    return kernels.planes(np.ascontiguousarray(unmasked("HammingIndex", block)))


def _length(block: kernels.Words) -> int:
    return block.shape[1]


def _side_by_side(parts: list[Ragged]) -> Ragged:
    """Return ragged columns of one length as one: their sequences, one behind another."""
    if len(parts) == 1:
        return parts[0]
    return Ragged.of([np.concatenate(rows) for rows in zip(*parts, strict=True)])
