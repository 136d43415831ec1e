from __future__ import annotations

import numpy as np
import pytest

from daskdl.collective.payload import Payload
from daskdl.collective.plan import plans
from daskdl.collective.reduction import Reduction


def test_sums_of_own_shards_leave_one_vector() -> None:
    reduction = Reduction(plans([0] * 4)[0], 8)
    leaves = np.random.default_rng(0).normal(size=(4, 8)).astype(np.float32)
    want = (leaves[0] + leaves[1]) + (leaves[2] + leaves[3])
    for s, leaf in enumerate(leaves):
        reduction.put(s, Payload(leaf.copy(), sums=(float(s),)))
    assert len([held for held in reduction._held.values() if held.pieces]) == 1
    total = reduction.total()
    np.testing.assert_array_equal(total.vector, want)
    assert total.sums == (6.0,)


def test_shards_without_samples_alone_make_no_sum() -> None:
    reduction = Reduction(plans([0, 0])[0], 8)
    for s in range(2):
        reduction.put(s, None)
    with pytest.raises(ValueError, match="expected a payload of at least one shard, found none"):
        reduction.total()
