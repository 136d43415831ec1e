"""VectorIndex and HammingIndex: the same results from any chunks, and what they refuse."""

from __future__ import annotations

import dask.array as da
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskdl.errors import DataError, SettingsError, ShapeError
from daskdl.search import HammingIndex, VectorIndex, packed, vectors

RNG = np.random.default_rng(0)
#: Few directions, with next to no noise: products in float32 cannot tell many vectors apart.
CENTRES = RNG.normal(size=(40, 24))
VECTORS = np.repeat(CENTRES, 10, 0) + 1e-7 * RNG.normal(size=(400, 24))
VECTORS = (VECTORS / np.linalg.norm(VECTORS, axis=1, keepdims=True)).astype(np.float32)
QUERIES = VECTORS[[3, 77, 399]] + np.float32(0.01)
PRODUCTS = (QUERIES.astype(float)[:, None] * VECTORS).sum(2)
CODES = RNG.integers(0, 256, (1000, 4), dtype=np.uint8)
ASKED = RNG.integers(0, 256, (3, 4), dtype=np.uint8)


@given(st.lists(st.integers(0, 200), max_size=4), st.integers(1, 400))
@settings(max_examples=15)
def test_chunks_do_not_change_results(cuts: list[int], k: int) -> None:
    bounds = [0, *sorted(cuts), 400]
    chunks = tuple(np.diff(bounds).tolist())
    index = VectorIndex(da.from_array(VECTORS, chunks=(chunks, 9)))
    scores, numbers = index.search(QUERIES, k)
    order = np.argsort(-PRODUCTS, axis=1, kind="stable")[:, :k]
    np.testing.assert_array_equal(numbers, order)
    np.testing.assert_array_equal(scores, np.take_along_axis(PRODUCTS, order, 1))


def test_batches_of_queries_do_not_change_results(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = VectorIndex(VECTORS).search(VECTORS, 25)
    monkeypatch.setattr(vectors, "TOGETHER", 1200)
    for one, other in zip(whole, VectorIndex(VECTORS).search(VECTORS, 25), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("chunks", [400, 150])
def test_pairs_are_all_that_are_near(chunks: int) -> None:
    rows = VECTORS if chunks == 400 else da.from_array(VECTORS, chunks=(chunks, 24))
    products = (VECTORS.astype(float)[:, None] * VECTORS).sum(2)
    least = np.median(products[0, 1:10])
    pairs, scores = VectorIndex(rows).duplicates(least)
    expected = np.argwhere(np.triu(products >= least, 1))
    np.testing.assert_array_equal(pairs, expected)
    np.testing.assert_array_equal(scores, products[tuple(expected.T)])
    with pytest.raises(DataError, match="expected at most 7 pairs with a product from"):
        VectorIndex(rows).duplicates(0.9, most=7)


def test_vectors_as_faiss() -> None:
    faiss = pytest.importorskip("faiss")
    peer, rows = faiss.IndexFlatIP(24), RNG.normal(size=(500, 24)).astype(np.float32)
    peer.add(rows)
    scores, numbers = peer.search(QUERIES, 50)
    mine = VectorIndex(rows).search(QUERIES, 50)
    np.testing.assert_allclose(mine[0], scores, atol=1e-5)
    np.testing.assert_array_equal(mine[1], numbers)


def test_mistakes_with_vectors_are_sentences() -> None:
    index = VectorIndex(VECTORS)
    assert repr(index) == "VectorIndex(400 vectors of 24 features, in memory)"
    with pytest.raises(ShapeError, match=r"expected float32 \(n, features\), found float64"):
        VectorIndex(CENTRES)
    with pytest.raises(ShapeError, match="expected queries of 24 features as the vectors, found 3"):
        index.search(QUERIES[:, :3])
    with pytest.raises(SettingsError, match="k of at least 1, found 0"):
        index.search(QUERIES, 0)
    with pytest.raises(DataError, match="expected finite numbers, found others in row 1 and 0"):
        VectorIndex(np.array([[1], [np.nan]], np.float32))
    with pytest.raises(DataError, match="expected finite numbers, found others in row 1 and 0"):
        VectorIndex(np.ma.masked_array(np.ones((2, 1), np.float32), [[0], [1]]))


def same(first, second):
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(np.asarray(one), np.asarray(other))


@pytest.mark.slow
def test_codes_of_a_dask_array_give_the_results_of_one_in_memory():
    """The chunks cut rows, at any lengths and one of them empty, and bytes too."""
    chunked = da.from_array(CODES, chunks=((300, 1, 0, 699), (3, 1)))
    whole, parted = HammingIndex(CODES), HammingIndex(chunked)
    assert len(whole) == len(parted) == 1000
    same(whole.search(ASKED, 20), parted.search(ASKED, 20))
    same(whole.duplicates(2), parted.duplicates(2))
    for one, other in zip(whole.within(ASKED, 9), parted.within(ASKED, 9), strict=True):
        assert len(one) == len(other) == 3
        for a, b in zip(one, other, strict=True):
            np.testing.assert_array_equal(a, b)
    assert repr(whole) == "HammingIndex(1,000 codes of 32 bits, in memory)"
    assert repr(parted) == "HammingIndex(1,000 codes of 32 bits, in 4 chunks)"


def test_lengths_of_chunks_need_not_be_known():
    chunked = da.from_array(CODES, chunks=(400, 4))
    some = chunked[chunked[:, 0] < 128]
    same(
        HammingIndex(some).search(ASKED, 5),
        HammingIndex(CODES[CODES[:, 0] < 128]).search(ASKED, 5),
    )


def test_all_of_few_codes():
    distances, numbers = HammingIndex(CODES[:3]).search(ASKED, 10)
    assert distances.shape == numbers.shape == (3, 3)
    assert (np.sort(numbers, 1) == [0, 1, 2]).all()


def test_codes_as_faiss():
    faiss = pytest.importorskip("faiss")
    peer = faiss.IndexBinaryFlat(32)
    peer.add(CODES)
    distances, _ = peer.search(ASKED, 50)
    np.testing.assert_array_equal(HammingIndex(CODES).search(ASKED, 50)[0], distances)


def test_packed_signs():
    assert packed([[1.0, -2.0, 0.0, 3.0, 1, 1, 1, 1]]).tolist() == [[0b10011111]]


def test_mistakes_with_codes_are_sentences():
    index = HammingIndex(CODES)
    with pytest.raises(
        ShapeError, match=r"expected packed codes, uint8 \(n, bytes\), found float64"
    ):
        HammingIndex(np.zeros((3, 4)))
    with pytest.raises(ShapeError, match="expected queries of 4 bytes as the codes, found 3"):
        index.search(ASKED[:, :3])
    with pytest.raises(SettingsError, match="k of at least 1, found 0"):
        index.search(ASKED, 0)
    with pytest.raises(DataError, match=r"at most 5 pairs within 32 bits, found 499,500; take"):
        index.duplicates(32, most=5)
