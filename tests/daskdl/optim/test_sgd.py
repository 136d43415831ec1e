"""SGD against its formula, against PyTorch, and that it changes none of its inputs."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from daskdl.errors import SettingsError
from daskdl.optim import SGD
from tests.daskdl.optim.runs import SIZE, check_pure, descend, torch_descends

CASES = {
    "plain": {},
    "momentum": {"momentum": 0.9},
    "nesterov": {"momentum": 0.9, "nesterov": True},
    "decay": {"weight_decay": 0.1},
    "all": {"momentum": 0.5, "nesterov": True, "weight_decay": 0.01},
}
each = pytest.mark.parametrize("settings", CASES.values(), ids=CASES)


@each
def test_agrees_with_pytorch(settings, torch):
    expected = torch_descends(lambda p: torch.optim.SGD(p, lr=0.05, **settings), torch)
    np.testing.assert_allclose(descend(SGD(0.05, **settings)), expected, rtol=1e-5, atol=1e-6)


@each
def test_changes_none_of_its_inputs(settings):
    check_pure(SGD(0.05, **settings))


def test_two_steps_by_hand():
    method = SGD(rate=0.1, momentum=0.5)
    w, g = np.array([1.0], np.float32), np.array([2.0], np.float32)
    w, state = method.update(w, g, method.init(1), 0)
    np.testing.assert_allclose((w[0], state["velocity"][0]), (0.8, 2))
    w, state = method.update(w, g, state, 1)
    np.testing.assert_allclose((w[0], state["velocity"][0]), (0.5, 3))


def test_state_is_what_momentum_needs():
    assert SGD().init(SIZE) == {}
    velocity = SGD(momentum=0.9).init(SIZE)["velocity"]
    assert velocity.dtype == np.float32
    assert velocity.shape == (SIZE,)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"rate": -1}, "SGD: expected 0 <= rate < inf, found -1"),
        ({"rate": float("nan")}, "SGD: expected 0 <= rate < inf, found nan"),
        ({"momentum": 1.0}, "SGD: expected 0 <= momentum < 1, found 1.0"),
    ],
)
def test_impossible_settings_are_refused(settings, sentence):
    with pytest.raises(SettingsError, match=sentence):
        SGD(**settings)


def test_settings_cannot_change_under_a_run():
    with pytest.raises(dataclasses.FrozenInstanceError):
        SGD().rate = 1.0
