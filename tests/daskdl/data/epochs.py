"""Epochs: all samples of a set, and those that a fit draws, iteration by iteration."""

from __future__ import annotations

import numpy as np

from daskdl.data import Batches
from daskdl.data.ragged import concatenated


def all_of(samples):
    """Return all samples as ``head`` gives them."""
    return samples.head(len(samples))


def everything(samples):
    """Return all samples, partition by partition."""
    loaded = [recipe.load() for recipe in samples.recipes]
    batches = [samples.take(p, np.arange(len(p)), (0, "test", k)) for k, p in enumerate(loaded)]
    some = [batch for batch, p in zip(batches, loaded, strict=True) if len(p)]
    return {name: concatenated([b[name] for b in some]) for name in some[0]}


def epoch(samples, batch_size, seed=0, number=0):
    """Return every batch of an epoch, as a fit draws them."""
    loaded = [recipe.load() for recipe in samples.recipes]
    batches = Batches(samples.lengths, batch_size)
    for share in batches.shares(number, 0, len(batches)):
        parts = [
            samples.take(
                partition,
                partition.order(seed, number, s)[share.starts[s] :][: share.counts[s]],
                (seed, "map", number, share.iteration, s),
            )
            for s, partition in enumerate(loaded)
            if share.counts[s]
        ]
        yield {name: concatenated([p[name] for p in parts]) for name in parts[0]}
