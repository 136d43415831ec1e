"""Every optim method keeps its contract: slots, layout, settings, refusals."""

from __future__ import annotations

import pickle
from dataclasses import dataclass

import numpy as np
import pytest

from daskdl.errors import SettingsError
from daskdl.optim import SGD, Adam, Method
from daskdl.optim.method import at_least_zero, below_one, in_range
from daskdl.optim.schedules import Cosine, Warmup
from tests.daskdl.optim.runs import LAYOUT, descend, start

METHODS = [SGD(0.1), SGD(0.1, momentum=0.9), Adam(0.05), Adam(Warmup(Cosine(0.05, 25), 5))]


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_it_goes_downhill(method):
    """The loss of tests.daskdl.optim.runs is least at 1."""
    before, after = (np.abs(w - 1).mean() for w in (start(), descend(method, steps=60)))
    assert after < 0.5 * before


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_it_travels_between_processes_and_compares_by_value(method):
    twin = pickle.loads(pickle.dumps(method))
    assert twin == method
    np.testing.assert_array_equal(descend(twin), descend(method))


@dataclass(frozen=True)
class Plain(Method):
    """A method of one's own with no more than it needs."""

    def init(self, size):
        return {}

    def update(self, weights, gradient, state, iteration, scale=1.0, overwrite=False):
        return weights - np.float32(scale) * gradient, {}


def test_a_method_of_ones_own_needs_two_functions():
    method, w = Plain(), start()
    assert method.on(LAYOUT) is method
    assert not method.by_element
    assert method.part([slice(0, 3)]) is None
    assert not method.joint
    assert method.terms(w, w, {}, 0).size == 0
    assert method.knowing(np.zeros((0, 1))) is method
    assert method.observe({}, 1.0) == {}
    with pytest.raises(NotImplementedError, match=r"Plain has to define rate_at\(\)"):
        method.rate_at(0)


def test_errors_name_method_setting_and_value():
    in_range(SGD(), "rate", 0.0, 0, 1)
    with pytest.raises(SettingsError, match=r"SGD: expected 0 <= rate < 1, found 1$"):
        in_range(SGD(), "rate", 1, 0, 1)
    with pytest.raises(SettingsError, match=r"SGD: expected 0 <= rate < 1, found None$"):
        in_range(SGD(), "rate", None, 0, 1)
    at_least_zero(SGD(), "learning_rate", "momentum")
    below_one(SGD(), "momentum")
    with pytest.raises(SettingsError, match=r"SGD: expected 0 <= learning_rate < 1, found 3$"):
        below_one(SGD(3), "learning_rate")
