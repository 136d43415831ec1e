"""Batches: every sample once per epoch, however many shards there are and how large batches are."""

from __future__ import annotations

import itertools
import subprocess
import sys
from itertools import chain

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl.data import Batches
from daskdl.data.batches import generator, permutation
from daskdl.errors import DataError, SettingsError

LENGTHS = st.lists(st.integers(0, 20), min_size=1, max_size=6).filter(any)


def drawn(batches, seed, epoch):
    """Return the (shard, sample) pairs of every batch of an epoch."""
    return [
        [
            (shard, int(sample))
            for shard, length in enumerate(batches.lengths)
            for sample in permutation(seed, epoch, shard, length)[share.starts[shard] :][
                : share.counts[shard]
            ]
        ]
        for share in batches.shares(epoch, 0, len(batches))
    ]


@given(LENGTHS, st.integers(1, 150), st.integers(0, 9), st.integers(0, 9))
def test_every_sample_once_per_epoch(lengths, batch_size, seed, epoch):
    batches = Batches(lengths, batch_size)
    epoch_of_batches = drawn(batches, seed, epoch)
    *full, last = map(len, epoch_of_batches)
    assert set(full) <= {batch_size}
    assert 1 <= last <= batch_size
    everything = [(shard, k) for shard, n in enumerate(lengths) for k in range(n)]
    assert sorted(chain(*epoch_of_batches)) == everything


@given(LENGTHS, st.integers(1, 30), st.data())
def test_a_part_of_an_epoch_has_the_same_shares(lengths, batch_size, data):
    """A run that goes on within an epoch goes on with the samples that were not drawn."""
    batches = Batches(lengths, batch_size)
    first = data.draw(st.integers(0, len(batches)))
    last = data.draw(st.integers(first, len(batches)))
    whole = [(s.iteration, *s.starts, *s.counts) for s in batches.shares(3, 0, len(batches))]
    part = [(s.iteration, *s.starts, *s.counts) for s in batches.shares(3, first, last)]
    assert part == whole[first:last]


@given(LENGTHS, st.integers(1, 40))
def test_every_shard_gives_its_part_of_a_batch(lengths, batch_size):
    share = np.array(lengths) / sum(lengths)
    for batch in Batches(lengths, batch_size).shares(0, 0, -(-sum(lengths) // batch_size)):
        # A shard is off by a sample of its own, and by its share of a sample from each shard.
        error = np.abs(batch.counts - share * batch.samples)
        assert (error <= 1 + share * len(lengths)).all()


def test_equal_shards_take_turns():
    counts = [share.counts.tolist() for share in Batches([4, 4, 0, 4], 3).shares(0, 0, 4)]
    assert counts == [[1, 1, 0, 1]] * 4


def test_other_shards_meet_in_each_epoch():
    """Where a batch has fewer samples than there are shards, neighbours are not always together."""
    batches = Batches([1] * 64, 4, seed=1)
    groups = [
        {frozenset(np.flatnonzero(share.counts)) for share in batches.shares(epoch, 0, 16)}
        for epoch in range(3)
    ]
    assert len(set.union(*groups)) > 40
    again = Batches([1] * 64, 4, seed=1).shares(1, 3, 4)
    assert frozenset(np.flatnonzero(next(again).counts)) in groups[1]
    other = Batches([1] * 64, 4, seed=2).shares(1, 0, 16)
    assert {frozenset(np.flatnonzero(share.counts)) for share in other} != groups[1]


def test_the_order_depends_on_seed_epoch_and_shard_alone():
    def order(batch_size, seed, epoch):
        shards = [[] for _ in range(3)]
        for shard, sample in chain(*drawn(Batches([40, 40, 40], batch_size), seed, epoch)):
            shards[shard].append(sample)
        return shards

    assert order(7, 1, 2) == order(120, 1, 2) == order(1, 1, 2)
    all_orders = [o for seed in (0, 1) for epoch in (0, 1) for o in order(7, seed, epoch)]
    assert len({tuple(o) for o in all_orders}) == 12


def test_an_order_that_others_share_cannot_be_changed():
    with pytest.raises(ValueError, match="read-only"):
        permutation(0, 0, 0, 10)[2:7][0] = 1


def test_the_order_is_that_of_earlier_versions():
    """A checkpoint of an earlier version goes on with the samples that it has not seen."""
    assert permutation(7, 1, 2, 10).tolist() == [5, 3, 1, 7, 9, 4, 8, 0, 2, 6]


@pytest.mark.parametrize(
    ("batch_size", "message"),
    [
        (0, "batch_size: expected at least 1, found 0"),
        (-3, "batch_size: expected at least 1, found -3"),
        (2.5, "batch_size: expected a whole number, found 2.5"),
    ],
)
def test_wrong_batch_sizes_are_refused(batch_size, message):
    with pytest.raises(SettingsError, match=message):
        Batches([3], batch_size)


def test_no_samples_are_refused():
    with pytest.raises(DataError, match=r"expected samples, found shards of \(0, 0\)"):
        Batches([0, 0], 4)


DRAW = "from daskdl.data.batches import generator; print(generator(3, 'order', 1, 2).random())"


@pytest.mark.slow
def test_another_process_draws_the_same():
    # The hash of a string differs between processes; a seed made with it would, too.
    run = subprocess.run([sys.executable, "-c", DRAW], capture_output=True, text=True, check=True)
    assert float(run.stdout) == generator(3, "order", 1, 2).random()


def test_draws_differ_by_seed_purpose_and_numbers():
    numbers = [(), (0,), (0, 0), (1,), (1, 0), (0, 1), (-1,), (2**32,), (2**63,)]
    draws = {
        generator(seed, purpose, *more).integers(2**63)
        for seed, purpose, more in itertools.product((0, 1), ("order", "map"), numbers)
    }
    assert len(draws) == 4 * len(numbers)


def test_a_negative_seed_is_refused():
    with pytest.raises(SettingsError, match="seed: expected at least 0, found -1"):
        generator(-1, "order")
