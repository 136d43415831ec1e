"""HammingIndex: the same results from numpy, from Dask and by faiss, and what it refuses."""

from __future__ import annotations

import dask.array as da
import numpy as np
import pytest

from daskdl.errors import DataError, SettingsError, ShapeError
from daskdl.search import HammingIndex, packed

RNG = np.random.default_rng(0)
CODES = RNG.integers(0, 256, (1000, 4), dtype=np.uint8)
QUERIES = RNG.integers(0, 256, (3, 4), dtype=np.uint8)


def same(first, second):
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(np.asarray(one), np.asarray(other))


@pytest.mark.slow
def test_a_dask_array_gives_the_results_of_one_in_memory():
    """The chunks cut rows, at any lengths and one of them empty, and bytes too."""
    chunked = da.from_array(CODES, chunks=((300, 1, 0, 699), (3, 1)))
    whole, parted = HammingIndex(CODES), HammingIndex(chunked)
    assert len(whole) == len(parted) == 1000
    same(whole.search(QUERIES, 20), parted.search(QUERIES, 20))
    same(whole.duplicates(2), parted.duplicates(2))
    for one, other in zip(whole.within(QUERIES, 9), parted.within(QUERIES, 9), strict=True):
        assert len(one) == len(other) == 3
        for a, b in zip(one, other, strict=True):
            np.testing.assert_array_equal(a, b)
    assert repr(whole) == "HammingIndex(1,000 codes of 32 bits, in memory)"
    assert repr(parted) == "HammingIndex(1,000 codes of 32 bits, in 4 chunks)"


def test_lengths_of_chunks_need_not_be_known():
    chunked = da.from_array(CODES, chunks=(400, 4))
    some = chunked[chunked[:, 0] < 128]
    same(
        HammingIndex(some).search(QUERIES, 5),
        HammingIndex(CODES[CODES[:, 0] < 128]).search(QUERIES, 5),
    )


def test_all_of_few_codes():
    distances, numbers = HammingIndex(CODES[:3]).search(QUERIES, 10)
    assert distances.shape == numbers.shape == (3, 3)
    assert (np.sort(numbers, 1) == [0, 1, 2]).all()


def test_as_faiss():
    faiss = pytest.importorskip("faiss")
    peer = faiss.IndexBinaryFlat(32)
    peer.add(CODES)
    distances, _ = peer.search(QUERIES, 50)
    np.testing.assert_array_equal(HammingIndex(CODES).search(QUERIES, 50)[0], distances)


def test_packed_signs():
    assert packed([[1.0, -2.0, 0.0, 3.0, 1, 1, 1, 1]]).tolist() == [[0b10011111]]


def test_mistakes_are_sentences():
    index = HammingIndex(CODES)
    with pytest.raises(
        ShapeError, match=r"expected packed codes, uint8 \(n, bytes\), found float64"
    ):
        HammingIndex(np.zeros((3, 4)))
    with pytest.raises(ShapeError, match="expected queries of 4 bytes as the codes, found 3"):
        index.search(QUERIES[:, :3])
    with pytest.raises(SettingsError, match="k of at least 1, found 0"):
        index.search(QUERIES, 0)
    with pytest.raises(DataError, match=r"at most 5 pairs within 32 bits, found 499,500; take"):
        index.duplicates(32, most=5)
