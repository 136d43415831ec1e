"""Every schedule with every method."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from daskdl.errors import SettingsError
from daskdl.optim import (
    LAMB,
    LARS,
    LBFGS,
    SGD,
    Adadelta,
    Adagrad,
    Adam,
    Adamax,
    AdamW,
    Ftrl,
    Nadam,
    RMSprop,
)
from daskdl.optim.schedules import (
    Cosine,
    Exponential,
    MultiStep,
    OneCycle,
    Plateau,
    Polynomial,
    Step,
    Warmup,
)
from tests.daskdl.optim import runs

METHODS = [SGD, Adam, AdamW, Adagrad, RMSprop, Adadelta, Adamax, Nadam, Ftrl, LARS, LAMB, LBFGS]
SCHEDULES = [
    Step(0.1, 3),
    MultiStep(0.1, (2, 4)),
    Exponential(0.1, 0.9),
    Polynomial(0.1, 20),
    Cosine(0.1, 3, restarts=True),
    OneCycle(0.1, 10),
    Plateau(0.1),
    Warmup(Cosine(0.1, 5), 3),
]


@pytest.mark.slow
@pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda s: type(s).__name__)
@pytest.mark.parametrize("make", METHODS)
def test_a_step_is_that_at_the_schedules_rate(make, schedule):
    method = make(schedule).on(runs.LAYOUT)
    assert pickle.loads(pickle.dumps(method)) == method
    assert repr(schedule) in repr(method)
    w, state = runs.start(), method.init(runs.SIZE)
    expected, plain = w, make(1.0).on(runs.LAYOUT).init(runs.SIZE)
    for i in range(6):
        w, state = method.update(w, runs.gradients(w, i), state, i)
        at = make(schedule(i)).on(runs.LAYOUT)
        assert method.rate_at(i, state) == at.rate_at(i)
        expected, plain = at.update(expected, runs.gradients(expected, i), plain, i)
        np.testing.assert_array_equal(w, expected)


def test_plateaus_state_goes_with_the_methods():
    method, w = SGD(Plateau(1.0, factor=0.5, patience=0)), runs.start()
    state = method.init(runs.SIZE)
    assert set(state) == {f"learning_rate.{name}" for name in ("rate", "best", "bad", "rest")}
    seen = method.observe(method.observe(state, 3.0), 3.0)
    assert method.rate_at(0, state) == 1.0
    assert method.rate_at(0, seen) == 0.5
    g = runs.gradients(w, 0)
    new, after = method.update(w, g, seen, 7)
    np.testing.assert_array_equal(new, SGD(0.5).update(w, g, {}, 7)[0])
    assert after == seen


def test_a_method_at_a_number_hears_nothing():
    state = Adam().init(3)
    assert Adam().observe(state, 1.0) is state


def test_a_function_is_no_schedule():
    with pytest.raises(SettingsError, match="Adam: expected learning_rate to be a number or a Sch"):
        Adam(lambda i: 0.1)
