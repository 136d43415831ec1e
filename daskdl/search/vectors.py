"""VectorIndex: vectors with the largest inner products, and pairs that are nearly equal."""

from __future__ import annotations

from itertools import combinations_with_replacement
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import DataError, SettingsError, ShapeError
from daskdl.kernels.products.matmul import matmul
from daskdl.masked import unmasked
from daskdl.search.parted import Parted

if TYPE_CHECKING:
    import dask.array as da

Vectors = NDArray[np.float32]
Numbers = NDArray[np.int64]
Scores = NDArray[np.float64]

#: Largest number of scores in memory.
TOGETHER = 1 << 24


class VectorIndex(Parted):
    """Exact search by inner product; it compares a query with all vectors.

    Products that may belong to the result are recomputed in float64, so that results do not depend
    on chunks or the batch of queries. For vectors of norm one, products are cosines.

    Parameters
    ----------
    vectors : float32 (n, features), numpy array or dask Array
        Vectors of a dask Array stay on the cluster, in the chunks of its first axis, and are
        searched in parallel.

    Raises
    ------
    ShapeError
        When the vectors have another dtype or shape.
    DataError
        When a number is not finite.

    Examples
    --------
    >>> index = VectorIndex(np.array([[1, 0], [0.6, 0.8], [0, 1]], np.float32))
    >>> scores, numbers = index.search(np.array([[1, 0]], np.float32), k=2)
    >>> numbers, scores.round(3)
    (array([[0, 1]]), array([[1. , 0.6]]))
    """

    def __init__(self, vectors: Vectors | da.Array) -> None:
        _check("vectors", vectors)
        self.features = int(vectors.shape[1])
        super().__init__(vectors, _finite)

    def __repr__(self) -> str:
        return f"VectorIndex({len(self):,} vectors of {self.features} features, {self._where})"

    def search(self, queries: Vectors, k: int = 10) -> tuple[Scores, Numbers]:
        """Return the largest products, and the numbers of their vectors.

        Parameters
        ----------
        queries : float32 (q, features)
        k : int
            Number of vectors for each query; all if there are fewer.

        Returns
        -------
        scores : float64 (q, k)
            Products, the largest first.
        numbers : int64 (q, k)
            Numbers of vectors, from 0; for equal scores the smaller first.

        Raises
        ------
        ShapeError
            When the queries have another number of features.
        SettingsError
            When ``k`` is below 1.
        """
        if k < 1:
            raise SettingsError(f"VectorIndex.search: expected k of at least 1, found {k!r}")
        _check("search: queries", queries)
        if queries.shape[1] != self.features:
            raise ShapeError(
                f"VectorIndex.search: expected queries of {self.features} features as the vectors, "
                f"found {queries.shape[1]}; make both by the same model"
            )
        asked = _finite(queries)
        parts = self._each(nearest, [(asked, min(k, n)) for n in self._lengths])
        negative, numbers = self._least([(-scores, numbers) for scores, numbers in parts], k)
        return -negative, numbers

    def duplicates(self, least: float, most: int = 10_000_000) -> tuple[Numbers, Scores]:
        """Return all pairs of vectors whose product is at least ``least``.

        All pairs are compared: twice the vectors take four times as long.

        Parameters
        ----------
        least : float
            Least product, such as a cosine of 0.95.
        most : int
            Largest number of pairs.

        Returns
        -------
        pairs : int64 (m, 2)
            Numbers of vectors, the smaller first; sorted.
        scores : float64 (m,)

        Raises
        ------
        DataError
            When there are more pairs.
        """
        blocks = list(combinations_with_replacement(range(len(self._blocks)), 2))
        starts = self._starts
        places = [(starts[i], starts[j], float(least), most) for i, j in blocks]
        parts = self._each(pairs_above, places, blocks)
        pairs = np.concatenate([pairs for pairs, _ in parts])
        if len(pairs) > most:
            raise _too_many(least, most)
        scores = np.concatenate([scores for _, scores in parts])
        order = np.lexsort(pairs.T[::-1])
        return pairs[order], scores[order]


def nearest(vectors: Vectors, queries: Vectors, k: int) -> tuple[Scores, Numbers]:
    """Return the k largest products of each query, largest first, and the vectors' numbers."""
    scores, numbers = np.empty((len(queries), k)), np.empty((len(queries), k), np.int64)
    if k == 0:
        return scores, numbers
    slack = _slack(vectors, queries)
    rows = max(1, TOGETHER // len(vectors))
    for start in range(0, len(queries), rows):
        products = matmul(queries[start : start + rows], vectors.T)
        for i, row in enumerate(products, start):
            some = np.flatnonzero(row >= np.partition(row, -k)[-k] - slack[i])
            exact = (vectors[some].astype(np.float64) * queries[i]).sum(1)
            order = np.argsort(-exact, kind="stable")[:k]
            scores[i], numbers[i] = exact[order], some[order]
    return scores, numbers


def pairs_above(
    first: Vectors, second: Vectors, at: int, behind: int, least: float, most: int
) -> tuple[Numbers, Scores]:
    """Return pairs (m, 2) from blocks that begin at rows ``at`` and ``behind``, and products."""
    pairs, scores, total = [np.empty((0, 2), np.int64)], [np.empty(0)], 0
    slack = _slack(second, first)
    rows = max(1, TOGETHER // max(1, len(second)))
    for start in range(0, len(first), rows):
        products = matmul(first[start : start + rows], second.T)
        i, j = np.nonzero(products >= least - slack[start : start + rows, None])
        i += start
        ordered = i + at < j + behind
        i, j = i[ordered], j[ordered]
        for place in range(0, len(i), TOGETHER // 64):  # few enough for their vectors
            one, other = (part[place : place + TOGETHER // 64] for part in (i, j))
            exact = (first[one].astype(np.float64) * second[other]).sum(1)
            above = exact >= least
            pairs.append(np.stack([one[above] + at, other[above] + behind], 1))
            scores.append(exact[above])
            total += len(scores[-1])
        if total > most:
            raise _too_many(least, most)
    return np.concatenate(pairs), np.concatenate(scores)


def _slack(vectors: Vectors, queries: Vectors) -> Scores:
    """Return the largest rounding difference between two float32 products of a query, (q,)."""
    longest = np.sqrt(np.einsum("nd,nd->n", vectors, vectors).max(initial=0))
    lengths = np.sqrt(np.einsum("nd,nd->n", queries, queries))
    slack: Scores = 2 * vectors.shape[1] * np.finfo(np.float32).eps * longest * lengths
    return slack.astype(np.float64)


def _too_many(least: float, most: int) -> DataError:
    return DataError(
        f"VectorIndex.duplicates: expected at most {most:,} pairs with a product from {least}, "
        "found more; take a larger number, or search for the frequent vectors"
    )


def _finite(vectors: Any) -> Vectors:
    vectors = np.asarray(unmasked("VectorIndex", vectors))
    wrong = np.flatnonzero(~np.isfinite(vectors).all(1))
    if wrong.size:
        raise DataError(
            f"VectorIndex: expected finite numbers, found others in row {wrong[0]} and "
            f"{len(wrong) - 1} more; leave them out"
        )
    return np.ascontiguousarray(vectors)


def _check(name: str, vectors: Any) -> None:
    if getattr(vectors, "dtype", None) != np.float32 or vectors.ndim != 2 or not vectors.shape[1]:
        raise ShapeError(
            f"VectorIndex: {name}: expected float32 (n, features), found "
            f"{getattr(vectors, 'dtype', type(vectors).__name__)} {np.shape(vectors)}"
            "; vectors.astype('float32') makes them so"
        )
