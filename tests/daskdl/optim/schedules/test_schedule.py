"""A schedule of one's own, and one that goes by a metric."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl.errors import SettingsError
from daskdl.optim import SGD
from daskdl.optim.schedules import Plateau, Schedule, Step, Warmup
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


@given(
    metrics=st.lists(st.sampled_from([-1.0, 0.5, 0.9, 0.99, 1.0, 1.01, 2.0]), max_size=30),
    factor=st.floats(0.1, 0.9),
    patience=st.integers(0, 3),
    threshold=st.sampled_from([0.0, 0.02, 0.2]),
    relative=st.booleans(),
    cooldown=st.integers(0, 3),
    lowest=st.sampled_from([0.0, 0.05]),
    higher=st.booleans(),
)
def test_agrees_with_pytorch(
    metrics, factor, patience, threshold, relative, cooldown, lowest, higher, torch
):
    method = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.3)
    theirs = torch.optim.lr_scheduler.ReduceLROnPlateau(
        method,
        "max" if higher else "min",
        factor,
        patience,
        threshold,
        "rel" if relative else "abs",
        cooldown,
        lowest,
        eps=0,
    )
    ours = Plateau(0.3, factor, patience, threshold, relative, cooldown, lowest, higher)
    state = ours.init()
    for metric in metrics:
        theirs.step(metric)
        before = dict(state)
        after = ours.observe(state, metric)
        assert state == before
        state = after
        assert ours.at(3, state) == pytest.approx(method.param_groups[0]["lr"])


def test_before_it_saw_anything_it_has_its_first_rate():
    check(Plateau(0.3), [0.3] * 5)
    assert Plateau(0.3).at(7, Plateau(0.3).init()) == 0.3


def test_a_metric_that_is_not_a_number_is_no_better():
    schedule = Plateau(1.0, factor=0.5, patience=1)
    state = schedule.init()
    for _ in range(2):
        state = schedule.observe(state, float("nan"))
    assert schedule.at(0, state) == 0.5


def test_it_never_rises_to_its_lowest_rate():
    schedule = Plateau(0.1, patience=0, lowest=0.2)
    state = schedule.observe(schedule.observe(schedule.init(), 1.0), 1.0)
    assert schedule.at(0, state) == 0.1


def test_impossible_settings_are_refused():
    with pytest.raises(SettingsError, match=r"Plateau: expected 0 <= factor < 1, found 1\.5"):
        Plateau(0.1, factor=1.5)
    with pytest.raises(SettingsError, match="Plateau: expected patience to be a whole number"):
        Plateau(0.1, patience=-1)
