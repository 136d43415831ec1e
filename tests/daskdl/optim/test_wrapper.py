"""Methods that wrap a method share their settings, slots and steps."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from daskdl.errors import SettingsError
from daskdl.optim import (
    EMA,
    LAMB,
    LBFGS,
    SGD,
    Accumulate,
    Adam,
    AdamW,
    ClipNorm,
    ClipValue,
    Groups,
)
from daskdl.optim.schedules import Plateau, Step
from tests.daskdl.optim import runs

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
