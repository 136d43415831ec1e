"""Streams and pools of blocks: every sample once an epoch, with few blocks in memory."""

from __future__ import annotations

import pickle
import threading
from itertools import chain, pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskdl.data import SampleSet
from daskdl.data.lazy.block_partition import MIXED, BlockPartition
from daskdl.data.lazy.blocks import PooledRecipe, block_lengths, ordered
from daskdl.data.lazy.derived import Loaded
from daskdl.data.recipe import Arrays, Recipe
from daskdl.errors import SettingsError
from tests.daskdl.data.epochs import epoch, everything


class Watched(Recipe):
    """Recipe of samples that counts how often it is loaded."""

    def __init__(self, start, stop):
        self.start, self.stop, self.loaded = start, stop, 0
        self.done = threading.Event()

    @property
    def nbytes(self):
        return 8 * len(self)

    def __len__(self):
        return self.stop - self.start

    def part(self, start, stop):
        return Watched(self.start + start, self.start + stop)

    def load(self):
        self.loaded += 1
        self.done.set()
        return Arrays({"x": np.arange(self.start, self.stop)})


def drawn_of(streamed, epoch, batch_size):
    """Return the samples of an epoch, and the most blocks in memory after a batch."""
    order, seen, most = streamed.order(3, epoch, 0), [], 0
    for start in range(0, len(order), batch_size):
        seen += streamed.take(order[start : start + batch_size])["x"].tolist()
        most = max(most, len(streamed._held))
    return seen, most


@settings(max_examples=40)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=20), st.integers(1, 30))
def test_each_block_is_read_once_an_epoch_and_few_are_in_memory(lengths, batch_size):
    bounds = np.cumsum([0, *lengths]).tolist()
    blocks = [Watched(a, b) for a, b in pairwise(bounds)]
    streamed = BlockPartition(blocks)
    seen, most = drawn_of(streamed, 0, batch_size)
    assert sorted(seen) == list(range(bounds[-1]))
    assert most <= 2 * MIXED
    assert [block.loaded for block in blocks] == [1] * len(blocks)
    again, _ = drawn_of(BlockPartition(blocks), 0, batch_size + 1)
    assert again == seen
    other, _ = drawn_of(streamed, 1, batch_size)
    assert sorted(other) == sorted(seen)
    assert other != seen or len(seen) < 5


@settings(max_examples=25)
@given(
    st.integers(1, 60), st.integers(1, 9), st.integers(1, 4), st.integers(8, 500), st.integers(1, 9)
)
def test_every_sample_of_a_stream_once_per_epoch(n, partitions, shards, held, batch_size):
    samples = SampleSet.from_arrays(x=np.arange(n), partitions=partitions).stream(shards, held)
    drawn = [batch["x"].tolist() for batch in epoch(samples, batch_size, seed=1)]
    assert sorted(chain(*drawn)) == list(range(n))
    assert everything(samples)["x"].tolist() == list(range(n))
    assert sorted(everything(samples.repartition(2))["x"].tolist()) == list(range(n))


def test_the_next_blocks_are_read_while_samples_are_drawn():
    blocks = [Watched(i, i + 1) for i in range(4 * MIXED)]
    streamed = BlockPartition(blocks)
    order = streamed.order(0, 0, 0)
    streamed.take(order[:1])
    coming = order[: 2 * MIXED].tolist()  # blocks of one sample each
    for i in coming:
        assert blocks[i].done.wait(60)
    assert [i for i, block in enumerate(blocks) if block.loaded] == sorted(coming)
    # A partition that moves to another worker takes no samples along.
    assert len(streamed._held) == 2 * MIXED
    assert BlockPartition.__getstate__(streamed) == (tuple(blocks), None)


def test_blocks_are_small_enough_for_the_bound():
    samples = SampleSet.from_arrays(x=np.zeros((64, 100)), partitions=2)
    (first, second) = samples.stream(held="64 kB").recipes
    assert all(2 * MIXED * block.nbytes <= 64_000 for block in first.blocks)
    assert sum(map(len, first.blocks)) == len(first) == len(second) == 32
    doubled = samples.map_batches(lambda batch: {"x": np.repeat(batch["x"], 2, axis=1)})
    more = doubled.stream(held="64 kB").recipes[0].blocks
    assert all(2 * MIXED * block.load().nbytes <= 64_000 for block in more)


def test_decoded_samples_count_by_their_decoded_bytes(tmp_path):
    pd.DataFrame({"x": [b"12"] * 64}).to_parquet(tmp_path / "x.parquet")

    def image(record):
        return np.zeros(100 * len(record), np.uint8)

    samples = SampleSet.from_parquet(tmp_path / "x.parquet", x="x", decode={"x": image})
    blocks = samples.stream(held="6400 B").recipes[0].blocks
    assert all(2 * MIXED * block.load().nbytes <= 6400 for block in blocks)


def test_a_function_is_applied_to_each_block_alone():
    samples = SampleSet([Watched(0, 64)]).map_batches(lambda batch: {"x": -batch["x"]})
    streamed = samples.stream(held=8 * 64).recipes[0]
    assert len(streamed.blocks) == 2 * MIXED
    assert [block.load().nbytes for block in streamed.blocks] == [64] * 2 * MIXED
    assert streamed.blocks[1].load().take(np.arange(2))["x"].tolist() == [-8, -9]


def test_a_stream_comes_last():
    streamed = SampleSet([Watched(0, 9)]).stream()
    for method, arguments in {
        "map_batches": (dict,),
        "filter": (bool,),
        "check": (),
        "split": ([1],),
        "shuffle": (),
    }.items():
        error = rf"SampleSet.{method}: expected samples before they are streamed.*{method}\(\) bef"
        with pytest.raises(SettingsError, match=error):
            getattr(streamed, method)(*arguments)
    assert streamed.map(dict).head(2)["x"].tolist() == [0, 1]


def test_a_shuffle_is_not_streamed_unless_it_lies_in_memory():
    mixed = SampleSet([Watched(0, 9), Watched(9, 18)]).shuffle(1)
    with pytest.raises(SettingsError, match=r"every block would read all partitions; leave it out"):
        mixed.map_batches(dict).stream()
    streamed = SampleSet.from_arrays(x=np.arange(9), partitions=2).shuffle(1).stream(3)
    assert sorted(everything(streamed)["x"].tolist()) == list(range(9))


def test_an_error_is_raised_where_the_block_is_drawn():
    class Lost(Watched):
        def load(self):
            raise OSError("gone")

    streamed = BlockPartition([Lost(0, 3)])
    for _ in range(2):  # a second try raises it again
        with pytest.raises(OSError, match="gone"):
            streamed.take(np.arange(2))


def test_a_fit_that_shuffles_locally_streams():
    samples = SampleSet.from_arrays(x=np.arange(8), partitions=2)
    assert ordered(samples, "global") is samples
    local = ordered(samples, "local")
    assert block_lengths(local) == {"blocks": [[4], [4]]}
    assert ordered(local, "local") is local
    assert block_lengths(samples) == {}
    with pytest.raises(SettingsError, match="shuffle: expected 'global' or 'local', found 'no'"):
        ordered(samples, "no")
    streamed = pickle.loads(pickle.dumps(local.recipes[0].load()))
    assert len(streamed) == 4
    assert streamed.nbytes == 0


@pytest.mark.parametrize("held", ["many", 0, None])
def test_a_bound_that_is_no_number_of_bytes_is_refused(held):
    with pytest.raises(SettingsError, match="held: expected"):
        SampleSet.from_arrays(x=np.arange(8)).stream(held=held)


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
    loaded = SampleSet([Loaded(recipe.load()) for recipe in samples.recipes])
    for number in (0, 1, 0):  # one set goes through all epochs, also back
        drawn = [batch["x"].tolist() for batch in epoch(loaded, batch_size, seed=1, number=number)]
        assert sorted(chain(*drawn)) == list(range(n))
        assert {len(batch) for batch in drawn[:-1]} <= {batch_size}
        alone = epoch(samples, batch_size, seed=1, number=number)
        assert drawn == [batch["x"].tolist() for batch in alone]
    assert everything(samples)["x"].tolist() == list(range(n))


def test_samples_move_from_stream_to_stream_in_every_epoch():
    samples = ordered(streams(256, 64, 4), "global")
    first, second = of_epoch(samples, 0), of_epoch(samples, 1)
    assert [len(some) for some in first] == [64] * 4
    # By chance a stream would get a quarter of its samples again, and a quarter of every other's.
    shares = np.array([[len(a & b) for b in second] for a in first])
    assert shares.max() < 48
    assert np.count_nonzero(shares) > 12
    local = ordered(streams(256, 64, 4), "local")
    assert of_epoch(local, 0) == of_epoch(local, 1)


def of_epoch(samples, number):
    """Return the samples that each partition draws in an epoch."""
    loaded = [recipe.load() for recipe in samples.recipes]
    return [set(p.take(p.order(0, number, s))["x"].tolist()) for s, p in enumerate(loaded)]


def test_few_blocks_are_in_memory():
    (recipe, _) = ordered(streams(640, 64, 2), "global").recipes
    partition = pickle.loads(pickle.dumps(recipe.load()))
    for number in range(2):
        assert drawn_of(partition, number, 7)[1] <= 2 * MIXED


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
