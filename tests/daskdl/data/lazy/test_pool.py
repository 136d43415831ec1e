"""Pools: blocks dealt out anew in each epoch, every sample once, none held for longer."""

from __future__ import annotations

import pickle
from itertools import chain, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskdl.data import SampleSet
from daskdl.data.arrays import Arrays
from daskdl.data.lazy.block_partition import MIXED
from daskdl.data.lazy.blocks import Pool, PooledRecipe
from daskdl.data.order import block_lengths, ordered
from daskdl.data.recipe import Recipe
from tests.daskdl.data.epochs import epoch, everything


class Block(Arrays):
    """Samples that a worker reads."""

    in_memory = False

    def part(self, start, stop):
        return Block(super().part(start, stop).arrays)


def streams(n, partitions, shards, held=1):
    bounds = [n * i // partitions for i in range(partitions + 1)]
    blocks = [Block({"x": np.arange(a, b)}) for a, b in pairwise(bounds) if a < b]
    return SampleSet(blocks).stream(shards, held)


@pytest.mark.slow
@settings(max_examples=30)
@given(
    st.integers(2, 60), st.integers(1, 9), st.integers(2, 4), st.integers(8, 500), st.integers(1, 9)
)
def test_every_sample_of_pooled_streams_once_per_epoch(n, partitions, shards, held, batch_size):
    samples = ordered(streams(n, partitions, shards, held), "global")
    loaded = SampleSet([Kept(recipe.load()) for recipe in samples.recipes])
    for number in (0, 1, 0):  # one set goes through all epochs, also back
        drawn = [batch["x"].tolist() for batch in epoch(loaded, batch_size, seed=1, number=number)]
        assert sorted(chain(*drawn)) == list(range(n))
        assert {len(batch) for batch in drawn[:-1]} <= {batch_size}
        alone = epoch(samples, batch_size, seed=1, number=number)
        assert drawn == [batch["x"].tolist() for batch in alone]
    assert everything(samples)["x"].tolist() == list(range(n))


class Kept(Recipe):
    """Recipe of one partition object."""

    def __init__(self, partition):
        self.partition = partition

    def __len__(self):
        return len(self.partition)

    def load(self):
        return self.partition


def test_samples_move_from_stream_to_stream_in_every_epoch():
    samples = ordered(streams(256, 64, 4), "global")
    first, second = of_epoch(samples, 0), of_epoch(samples, 1)
    assert [len(some) for some in first] == [64] * 4
    # By chance a quarter of a stream's samples would come again, and do of each of the others'.
    shares = np.array([[len(a & b) for b in second] for a in first])
    assert shares.max() < 48
    assert np.count_nonzero(shares) > 12
    local = ordered(streams(256, 64, 4), "local")
    assert of_epoch(local, 0) == of_epoch(local, 1)


def of_epoch(samples, number):
    """Return what each partition draws in an epoch."""
    loaded = [recipe.load() for recipe in samples.recipes]
    return [set(p.take(p.order(0, number, s))["x"].tolist()) for s, p in enumerate(loaded)]


def test_few_blocks_are_held():
    (recipe, _) = ordered(streams(640, 64, 2), "global").recipes
    partition = pickle.loads(pickle.dumps(recipe.load()))
    for number in range(2):
        order = partition.order(0, number, 0)
        for start in range(0, len(order), 7):
            partition.take(order[start : start + 7])
            assert len(partition._held) <= 2 * MIXED


def test_pools_are_made_of_streams_that_workers_read():
    pooled = ordered(streams(40, 4, 2), "global")
    assert all(isinstance(recipe, PooledRecipe) for recipe in pooled.recipes)
    assert pooled.recipes[0].pool is pooled.recipes[1].pool
    assert pooled.lengths == (20, 20)
    assert pooled.nbytes == 40 * 8
    assert sum(block_lengths(pooled)["pool"]) == 40
    assert pooled.head(3)["x"].tolist() == [0, 1, 2]
    for other in (streams(40, 4, 1), SampleSet.from_arrays(x=np.arange(40)).stream(2)):
        assert ordered(other, "global") is other


def test_a_stretch_of_a_pool_is_cut_of_its_blocks():
    pool = Pool([Block({"x": np.arange(a, a + 4)}) for a in (0, 4, 8)])
    assert len(pool) == 12
    assert sum(map(len, pool.as_they_lie(3, 9))) == 6
    assert pool.load() is pool
