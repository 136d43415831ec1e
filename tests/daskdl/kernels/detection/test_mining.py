"""Hard negatives are the most wrong ones, as many as were asked for."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from daskdl.kernels.detection.mining import hard_negatives


@given(seed=st.integers(0, 99), ratio=st.sampled_from([0.0, 1.0, 3.0]), ties=st.booleans())
def test_the_most_wrong_negatives(seed, ratio, ties):
    rng = np.random.default_rng(seed)
    losses = rng.integers(0, 4, (3, 40)).astype(float) if ties else rng.random((3, 40))
    positive = rng.random((3, 40)) < rng.choice([0, 0.1, 0.5, 1], (3, 1))
    chosen = hard_negatives(losses, positive, ratio)
    assert not (chosen & positive).any()
    for own, found, taken in zip(losses, positive, chosen, strict=True):
        assert taken.sum() == min(int(ratio * max(found.sum(), 1)), (~found).sum())
        left = own[~found & ~taken]
        if taken.any() and left.size:
            assert own[taken].min() >= left.max()
