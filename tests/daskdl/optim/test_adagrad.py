"""Adagrad against PyTorch and by hand, and that it changes none of its inputs."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.errors import SettingsError
from daskdl.optim import Adagrad
from tests.daskdl.optim.runs import check_pure, descend, torch_descends

CASES = {
    "plain": ({}, {}),
    "rate decay": ({"rate_decay": 0.1}, {"lr_decay": 0.1}),
    "initial": ({"initial": 0.5}, {"initial_accumulator_value": 0.5}),
    "all": (
        {"rate_decay": 0.01, "weight_decay": 0.1, "epsilon": 1e-3},
        {"lr_decay": 0.01, "weight_decay": 0.1, "eps": 1e-3},
    ),
}
each = pytest.mark.parametrize(("settings", "theirs"), CASES.values(), ids=CASES)


@each
def test_agrees_with_pytorch(settings, theirs, torch):
    expected = torch_descends(lambda p: torch.optim.Adagrad(p, lr=0.1, **theirs), torch)
    np.testing.assert_allclose(descend(Adagrad(0.1, **settings)), expected, rtol=1e-5, atol=1e-6)


@each
def test_changes_none_of_its_inputs(settings, theirs):
    check_pure(Adagrad(0.1, **settings))


def test_two_steps_by_hand():
    method = Adagrad(rate=0.5, epsilon=0)
    w, g = np.array([1.0], np.float32), np.array([3.0], np.float32)
    w, state = method.update(w, g, method.init(1), 0)
    assert (w[0], state["square"][0]) == (0.5, 9)
    w, state = method.update(w, 4 * g / 3, state, 1)
    assert w[0] == pytest.approx(0.5 - 0.5 * 4 / 5)


@pytest.mark.parametrize("name", ["rate", "rate_decay", "weight_decay", "initial", "epsilon"])
def test_impossible_settings_are_refused(name):
    with pytest.raises(SettingsError, match=f"Adagrad: expected 0 <= {name} < inf, found -1"):
        Adagrad(**{name: -1})
