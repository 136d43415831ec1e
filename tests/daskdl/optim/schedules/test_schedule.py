"""A schedule of one's own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from daskdl.errors import SettingsError
from daskdl.optim import SGD
from daskdl.optim.schedules import Schedule, Step, Warmup
from daskdl.optim.schedules.schedule import whole
from tests.daskdl.optim.schedules.rates import check


@dataclass(frozen=True)
class Root(Schedule):
    """One over the root of the iterations."""

    rate: float

    def __call__(self, iteration):
        return self.rate / (iteration + 1) ** 0.5


def test_it_needs_one_function():
    check(Root(1.0), [1.0, 0.5**0.5, (1 / 3) ** 0.5])
    assert Root(1.0).init() == {}
    assert Root(1.0).at(3, Root(1.0).observe({}, 2.0)) == 0.5
    assert Warmup(Root(1.0), 2)(5) == 0.5
    w = np.ones(3, np.float32)
    np.testing.assert_array_equal(SGD(Root(1.0)).update(w, w, {}, 3)[0], 0.5)


def test_whole_numbers_are_checked():
    whole(Step(0.1, 3), "every", 3)
    with pytest.raises(SettingsError, match=r"Step: expected every .* of at least 4"):
        whole(Step(0.1, 3), "every", 4)
