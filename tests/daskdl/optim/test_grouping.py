"""Grouping: what a step of one group is."""

from __future__ import annotations

import numpy as np

from daskdl.optim import AdamW
from daskdl.optim.grouping import ALONE, Grouping
from daskdl.optim.ranges import Ranges
from tests.daskdl.optim.runs import SIZE, gradients, start


def test_one_group_over_all_is_none():
    assert Grouping() == ALONE
    method, w = AdamW(0.1), start()
    put = w, gradients(w, 0), method.init(SIZE), 0
    whole, _ = method.update(*put)
    twice = Grouping(Ranges((10, SIZE), (0, 1)), (1.0, 1.0), (None, method.weight_decay))
    np.testing.assert_array_equal(method.update_groups(*put, 1.0, ALONE)[0], whole)
    np.testing.assert_array_equal(method.update_groups(*put, 1.0, twice)[0], whole)
