"""SGD against its formula, against PyTorch, and that it changes none of its inputs."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl.errors import SettingsError
from daskdl.optim import SGD
from tests.daskdl.optim import runs


@st.composite
def options(draw):
    """Draw settings that PyTorch gives the same names."""
    momentum = draw(st.just(0.0) | runs.betas)
    nesterov = bool(momentum) and draw(st.booleans())
    dampening = 0.0 if nesterov or not momentum else draw(st.just(0.0) | runs.betas)
    decay = draw(runs.decays)
    return {
        "momentum": momentum,
        "nesterov": nesterov,
        "dampening": dampening,
        "weight_decay": decay,
    }


@runs.few
@given(rate=runs.rates, options=options(), dtype=runs.dtypes)
def test_agrees_with_pytorch(rate, options, dtype, torch):
    expected = runs.torch_descends(
        lambda p: torch.optim.SGD(p, lr=rate, **options), torch, np.dtype(dtype)
    )
    runs.assert_close(runs.descend(SGD(rate, **options), dtype=np.dtype(dtype)), expected)


@runs.few
@given(options=options(), points=runs.cuts)
def test_slices_have_the_bits_of_the_whole(options, points):
    runs.check_pure(SGD(0.05, **options))
    runs.check_slices(SGD(0.05, **options), points)


def test_two_steps_by_hand():
    method = SGD(learning_rate=0.1, momentum=0.5)
    w, g = np.array([1.0], np.float32), np.array([2.0], np.float32)
    w, state = method.update(w, g, method.init(1), 0)
    np.testing.assert_allclose((w[0], state["velocity"][0]), (0.8, 2))
    w, state = method.update(w, g, state, 1)
    np.testing.assert_allclose((w[0], state["velocity"][0]), (0.5, 3))


def test_state_is_what_momentum_needs():
    assert SGD().init(runs.SIZE) == {}
    velocity = SGD(momentum=0.9).init(runs.SIZE)["velocity"]
    assert velocity.dtype == np.float32
    assert velocity.shape == (runs.SIZE,)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"learning_rate": -1}, "SGD: expected 0 <= learning_rate < inf, found -1"),
        ({"learning_rate": float("nan")}, "SGD: expected 0 <= learning_rate < inf, found nan"),
        ({"learning_rate": "fast"}, "SGD: expected 0 <= learning_rate < inf, found 'fast'"),
        ({"momentum": 1.0}, "SGD: expected 0 <= momentum < 1, found 1.0"),
        ({"dampening": 1.0}, "SGD: expected 0 <= dampening < 1, found 1.0"),
        ({"nesterov": True}, "SGD: expected momentum > 0 and dampening = 0 with nesterov=True"),
    ],
)
def test_impossible_settings_are_refused(settings, sentence):
    with pytest.raises(SettingsError, match=sentence):
        SGD(**settings)


def test_settings_cannot_change_under_a_run():
    with pytest.raises(dataclasses.FrozenInstanceError):
        SGD().learning_rate = 1.0
