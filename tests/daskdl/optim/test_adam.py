"""Adam and AdamW against their formulas and PyTorch; the rate's schedule; clipping."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.errors import SettingsError
from daskdl.optim import Adam
from tests.daskdl.optim.runs import SIZE, check_pure, descend, gradients, start, torch_descends

CASES = {
    "plain": {},
    "betas": {"beta1": 0.5, "beta2": 0.9},
    "epsilon": {"epsilon": 1e-2},
    "decay": {"weight_decay": 0.1},
}
each = pytest.mark.parametrize("settings", CASES.values(), ids=CASES)


@each
def test_agrees_with_pytorch(settings, torch):
    def make(parameters):
        betas = settings.get("beta1", 0.9), settings.get("beta2", 0.999)
        decay, epsilon = settings.get("weight_decay", 0), settings.get("epsilon", 1e-8)
        kind = torch.optim.AdamW if decay else torch.optim.Adam
        return kind(parameters, lr=0.01, betas=betas, eps=epsilon, weight_decay=decay)

    expected = torch_descends(make, torch)
    np.testing.assert_allclose(descend(Adam(0.01, **settings)), expected, rtol=1e-5, atol=2e-6)


@each
def test_is_the_papers_algorithm(settings):
    """Algorithm 1 of arXiv 1412.6980, in float64; the decay as in algorithm 2 of 1711.05101."""
    method = Adam(0.01, **settings)
    w, m, v = start().astype(float), 0.0, 0.0
    for i in range(10):
        g, t = gradients(w, i), i + 1
        m = method.beta1 * m + (1 - method.beta1) * g
        v = method.beta2 * v + (1 - method.beta2) * g * g
        step = m / (1 - method.beta1**t) / (np.sqrt(v / (1 - method.beta2**t)) + method.epsilon)
        w = w - 0.01 * method.weight_decay * w - 0.01 * step
    np.testing.assert_allclose(descend(method), w, rtol=1e-5, atol=2e-6)


@each
def test_changes_none_of_its_inputs(settings):
    check_pure(Adam(0.01, clip_norm=1.0, warmup=3, **settings))


def test_first_step_has_the_length_of_the_rate():
    method, g = Adam(0.1), np.array([1e-3, -50, 7], np.float32)
    w, _ = method.update(np.zeros(3, np.float32), g, method.init(3), 0)
    np.testing.assert_allclose(w, -0.1 * np.sign(g), rtol=1e-4)


@pytest.mark.parametrize(("norm", "factor"), [(1.0, 0.2), (5.0, 1.0), (50.0, 1.0)])
def test_long_gradients_are_clipped_to_a_norm(norm, factor):
    g = np.array([3.0, -4.0], np.float32)  # of norm 5
    zeros = np.zeros(2, np.float32)
    clipped = Adam(clip_norm=norm)
    _, state = clipped.update(zeros, g, clipped.init(2), 0)
    np.testing.assert_allclose(state["mean"], 0.1 * factor * g, rtol=1e-6)


def test_zero_gradient_can_be_clipped():
    method, zeros = Adam(clip_norm=1.0), np.zeros(2, np.float32)
    w, _ = method.update(zeros, zeros, method.init(2), 0)
    np.testing.assert_array_equal(w, 0)


def test_rate_rises_and_falls():
    method = Adam(1.0, warmup=10, decay_over=110)
    rates = np.array([method.rate_at(i) for i in range(200)])
    np.testing.assert_allclose(rates[:10], np.arange(1, 11) / 10)
    assert rates[10] == 1
    assert rates[60] == pytest.approx(0.525)
    np.testing.assert_allclose(rates[110:], 0.05)
    assert (np.diff(rates[10:111]) < 0).all()


def test_rate_may_fall_at_once():
    assert Adam(1.0, warmup=1, decay_over=1).rate_at(0) == 1
    assert Adam(1.0, warmup=1, decay_over=1).rate_at(2) == pytest.approx(0.05)


def test_rate_stays_without_a_schedule():
    assert {Adam(0.3).rate_at(i) for i in (0, 5, 10**6)} == {0.3}
    assert Adam(0.3, warmup=2).rate_at(10**6) == 0.3


def test_state_is_two_moments_of_float32():
    state = Adam().init(SIZE)
    assert {name: (a.dtype, a.shape) for name, a in state.items()} == {
        "mean": (np.float32, (SIZE,)),
        "square": (np.float32, (SIZE,)),
    }


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"rate": -1}, "Adam: expected 0 <= rate < inf, found -1"),
        ({"beta1": 1.0}, "Adam: expected 0 <= beta1 < 1, found 1.0"),
        ({"beta2": -0.1}, "Adam: expected 0 <= beta2 < 1, found -0.1"),
        ({"epsilon": -1e-8}, "Adam: expected 0 <= epsilon"),
        ({"weight_decay": -1}, "Adam: expected 0 <= weight_decay"),
        ({"clip_norm": 0.0}, "Adam: expected clip_norm > 0 or None, found 0.0"),
        ({"warmup": -1}, "Adam: expected 0 <= warmup"),
        ({"warmup": 10, "decay_over": 9}, "Adam: expected 10 <= decay_over"),
    ],
)
def test_impossible_settings_are_refused(settings, sentence):
    with pytest.raises(SettingsError, match=sentence):
        Adam(**settings)
