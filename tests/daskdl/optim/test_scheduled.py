"""Every schedule with every method."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given

from daskdl.errors import SettingsError
from daskdl.optim import (
    EMA,
    LAMB,
    LARS,
    LBFGS,
    SGD,
    Accumulate,
    Adadelta,
    Adagrad,
    Adam,
    Adamax,
    AdamW,
    ClipNorm,
    ClipValue,
    Ftrl,
    Groups,
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


INNER = Adam(Plateau(0.1, patience=0))
ALL = [ClipValue(INNER, 0.5), ClipNorm(INNER, 0.5), EMA(INNER, 0.9), Accumulate(INNER, 2)]
each = pytest.mark.parametrize("method", ALL, ids=lambda m: type(m).__name__)


@each
def test_what_is_inside_hears_of_validations(method):
    state = method.init(runs.SIZE)
    for _ in range(2):
        state = method.observe(state, 1.0)
    assert method.rate_at(5, state) == pytest.approx(0.01)
    assert method.rate_at(5) == 0.1
    _, after = method.update(runs.start(), runs.start(), state, 1)
    assert after.keys() == state.keys()
    assert method.rate_at(6, after) == pytest.approx(0.01)


def test_they_go_around_each_other():
    groups = Groups(AdamW(Step(0.1, 5)))
    method = EMA(ClipNorm(Accumulate(groups, over=2), norm=1.0), decay=0.9).on(runs.LAYOUT)
    assert set(method.init(runs.SIZE)) == {"mean", "square", "ema.weights", "accumulate.gradient"}
    assert np.isfinite(runs.descend(method)).all()
    assert method.part([slice(0, 5)]) is None
    assert method.rate_at(9) == 0.1
    assert method.rate_at(10) == pytest.approx(0.01)


@runs.few
@given(points=runs.cuts)
def test_slices_have_the_bits_of_the_whole(points):
    inner = Groups(AdamW()).on(runs.long_layout(301))
    runs.check_slices(EMA(ClipValue(Accumulate(inner, 2), 0.3), 0.9), points)


def test_the_layout_reaches_what_is_inside():
    method = EMA(LAMB(), 0.9).on(runs.LAYOUT)
    assert method.method.layout == runs.LAYOUT
    assert method.part([slice(0, 3)]) is None


def test_none_goes_around_itself():
    with pytest.raises(SettingsError, match=r"EMA: expected to be once around a method, found it"):
        EMA(EMA(SGD())).init(3)


def test_something_else_inside_is_refused():
    with pytest.raises(SettingsError, match="EMA: expected a Method as the first argument, found"):
        EMA("SGD")


@pytest.mark.parametrize(
    ("method", "sentence"),
    [
        (EMA(Adam()), "EMA: expected parameters that are trained as a whole, found tables"),
        (ClipNorm(LAMB(), 1), r"ClipNorm: expected a method that needs no sum .*, found LAMB"),
        (ClipValue(ClipNorm(Adam(), 1), 1), "ClipValue: expected a method that needs no sum"),
        (LBFGS(), "LBFGS: expected parameters that are trained as a whole"),
    ],
    ids=lambda m: type(m).__name__,
)
def test_methods_without_a_step_by_rows_say_so(method, sentence):
    with pytest.raises(SettingsError, match=sentence):
        method.init_rows(6)
