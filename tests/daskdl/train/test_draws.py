from __future__ import annotations

import numpy as np

from daskdl.data import Batches
from daskdl.train.draws import draws_of, note_of, noted


def test_draws_are_what_the_shares_say() -> None:
    shares = list(Batches([7, 20, 3, 11], 5).shares(2, 1, 6))
    draws = draws_of(shares, [1, 3])
    for share, draw in zip(shares, draws.each(), strict=True):
        assert (draw.epoch, draw.iteration) == (share.epoch, share.iteration)
        assert draw.shards == tuple((share.starts[s], share.counts[s]) for s in (1, 3))


def test_what_is_noted_is_what_there_was() -> None:
    shares = list(Batches([7, 20, 3, 11], 5).shares(2, 1, 6))
    for share, found in zip(shares, noted(note_of(shares)), strict=True):
        assert (found.epoch, found.iteration) == (share.epoch, share.iteration)
        np.testing.assert_array_equal(found.starts, share.starts)
        np.testing.assert_array_equal(found.counts, share.counts)
