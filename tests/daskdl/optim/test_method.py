"""Every optim method keeps its contract: slots, layout, settings, refusals."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl.errors import SettingsError
from daskdl.optim import LBFGS, SGD, Adam, Method
from daskdl.optim.method import at_least_zero, below_one, in_range
from daskdl.optim.schedules import Cosine, Warmup
from tests.daskdl.optim import runs
from tests.daskdl.optim.runs import LAYOUT, descend, start

METHODS = [SGD(0.1), SGD(0.1, momentum=0.9), Adam(0.05), Adam(Warmup(Cosine(0.05, 25), 5))]


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_it_goes_downhill(method):
    """The loss of tests.daskdl.optim.runs is least at 1."""
    before, after = (np.abs(w - 1).mean() for w in (start(), descend(method, steps=60)))
    assert after < 0.5 * before


@dataclass(frozen=True)
class Plain(Method):
    """A user's method with no more than it needs."""

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


def test_two_steps_by_hand():
    method = SGD(learning_rate=0.1, momentum=0.5)
    w, g = np.array([1.0], np.float32), np.array([2.0], np.float32)
    w, state = method.update(w, g, method.init(1), 0)
    np.testing.assert_allclose((w[0], state["velocity"][0]), (0.8, 2))
    w, state = method.update(w, g, state, 1)
    np.testing.assert_allclose((w[0], state["velocity"][0]), (0.5, 3))


def test_settings_cannot_change_under_a_run():
    with pytest.raises(dataclasses.FrozenInstanceError):
        SGD().learning_rate = 1.0


def pytorch_lbfgs(torch, rate, history):
    def make(parameters):
        # With one iteration, a step evaluates the loss only once.
        return torch.optim.LBFGS(parameters, lr=rate, max_iter=1, history_size=history)

    return make


@runs.few
@given(rate=st.floats(0.1, 1), history=st.integers(1, 6), dtype=runs.dtypes)
def test_agrees_with_pytorch_of_lbfgs(rate, history, dtype, torch):
    expected = runs.torch_descends(pytorch_lbfgs(torch, rate, history), torch, np.dtype(dtype))
    weights = runs.descend(LBFGS(rate, history), dtype=np.dtype(dtype))
    # The method divides by small products of the changing gradients.
    tolerance = 1e-3 if dtype == "f4" else 1e-7
    np.testing.assert_allclose(weights, expected, rtol=tolerance, atol=tolerance)


def test_a_bowl_needs_few_steps():
    """With curvatures from 1 to 100, gradient descent would need hundreds of steps."""
    method, w = LBFGS(history=20), np.full(37, 5.0)
    steep, state = np.linspace(1, 100, 37), LBFGS(history=20).init(37)
    for i in range(60):
        w, state = method.update(w, steep * (w - 1), state, i)
    np.testing.assert_allclose(w, 1, atol=1e-4)


def test_it_stays_where_the_gradient_vanishes():
    method, w = LBFGS(), runs.start()
    state = method.init(runs.SIZE)
    new, after = method.update(w, np.zeros_like(w), state, 0)
    np.testing.assert_array_equal(new, w)
    assert after.keys() == state.keys()
    g = runs.gradients(w, 0)
    later, early = (method.update(w, g, s, i)[0] for s, i in ((after, 1), (state, 0)))
    np.testing.assert_array_equal(later, early)  # a first step, whenever it comes


def test_only_the_whole_vector_can_be_stepped():
    runs.check_pure(LBFGS(history=2))
    assert LBFGS().part([slice(0, 3)]) is None
    assert not LBFGS().by_element
