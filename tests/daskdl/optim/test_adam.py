"""Adam's and Adagrad's kin: what each promises beside the table of test_methods.py."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl.errors import SettingsError
from daskdl.optim import Adagrad, Adam, Adamax, AdamW, Ftrl, Nadam, RMSprop
from daskdl.optim.schedules import Polynomial
from tests.daskdl.optim import runs


def test_first_step_has_the_length_of_the_rate():
    method, g = Adam(0.1), np.array([1e-3, -50, 7], np.float32)
    w, _ = method.update(np.zeros(3, np.float32), g, method.init(3), 0)
    np.testing.assert_allclose(w, -0.1 * np.sign(g), rtol=1e-4)


def test_rate_stays_without_a_schedule():
    assert {Adam(0.3).rate_at(i) for i in (0, 5, 10**6)} == {0.3}


def test_state_is_two_moments_of_float32():
    state = Adam().init(runs.SIZE)
    assert {name: (a.dtype, a.shape) for name, a in state.items()} == {
        "mean": (np.float32, (runs.SIZE,)),
        "square": (np.float32, (runs.SIZE,)),
    }


def test_decay_stays_out_of_the_moments():
    method, w = AdamW(0.1, weight_decay=0.5), np.ones(2, np.float32)
    new, state = method.update(w, np.zeros(2, np.float32), method.init(2), 0)
    np.testing.assert_allclose(new, 0.95)
    assert not state["mean"].any()


def test_a_gradient_that_is_not_a_number_shows():
    method, w = Adamax(), np.ones(2, np.float32)
    new, _ = method.update(w, np.array([np.nan, 1], np.float32), method.init(2), 0)
    assert np.isnan(new[0])
    assert np.isfinite(new[1])


@pytest.mark.parametrize("beta1", [0.0, 0.5, 0.9, 0.999])
def test_momenta_that_are_too_many_to_multiply_count_for_nothing(beta1):
    method = Nadam(beta1=beta1)
    momenta = [beta1 * (1 - 0.5 * 0.96 ** (t * 4e-3)) for t in range(1, 50_001)]
    for t in (1, 2, 40, 1000, 50_000):
        expected = np.prod(momenta[:t])
        assert 1 - method._product(t) == pytest.approx(1 - expected, rel=1e-14)


def test_two_steps_by_hand():
    method = Adagrad(learning_rate=0.5, epsilon=0)
    w, g = np.array([1.0], np.float32), np.array([3.0], np.float32)
    w, state = method.update(w, g, method.init(1), 0)
    assert (w[0], state["square"][0]) == (0.5, 9)
    w, state = method.update(w, 4 * g / 3, state, 1)
    assert w[0] == pytest.approx(0.5 - 0.5 * 4 / 5)


def test_state_is_what_the_settings_need():
    assert list(RMSprop().init(3)) == ["square"]
    assert list(RMSprop(momentum=0.5).init(3)) == ["square", "velocity"]
    assert list(RMSprop(momentum=0.5, centered=True).init(3)) == ["square", "mean", "velocity"]


def test_a_variance_that_rounds_below_zero_is_none():
    method, w, g = RMSprop(centered=True, smoothing=0.5), *np.ones((2, 64), np.float32)
    g *= np.linspace(0.9, 1.1, 64, dtype=np.float32)
    state = {"square": g * g * np.float32(1 - 1e-6), "mean": g}
    new, _ = method.update(w, g, state, 0)
    assert np.isfinite(new).all()


options_ftrl = st.fixed_dictionaries(
    {
        "beta": st.floats(0, 2),
        "l1": st.just(0.0) | st.floats(0.01, 2),
        "l2": runs.decays,
        "initial": st.sampled_from([0.25, 1.0]),
    }
)


def paper(alpha, beta, l1, l2, initial):
    """Return the weights after the usual run of algorithm 1 of McMahan et al., one by one."""
    w = runs.start().astype(float)
    z, n = np.zeros_like(w), np.full_like(w, initial)
    for t in range(runs.STEPS):
        g = runs.gradients(w, t)
        for i in range(len(w)):
            sigma = ((n[i] + g[i] ** 2) ** 0.5 - n[i] ** 0.5) / alpha
            z[i] += g[i] - sigma * w[i]
            n[i] += g[i] ** 2
            if abs(z[i]) <= l1:
                w[i] = 0
            else:
                w[i] = -(((beta + n[i] ** 0.5) / alpha + l2) ** -1) * (z[i] - np.sign(z[i]) * l1)
    return w


@runs.few
@given(rate=st.floats(0.01, 0.5), options=options_ftrl, dtype=runs.dtypes)
def test_is_the_papers_algorithm(rate, options, dtype):
    found = runs.descend(Ftrl(rate, **options), dtype=np.dtype(dtype))
    expected = paper(rate, **options)
    if dtype == "f8":
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    else:  # a threshold may be passed in one and not in the other
        np.testing.assert_allclose(found, expected, atol=1e-3)


@runs.few
@given(options=options_ftrl, decay=runs.decays, points=runs.cuts)
def test_slices_have_the_bits_of_the_whole_ftrl(options, decay, points):
    method = Ftrl(0.1, weight_decay=decay, **options)
    runs.check_pure(method)
    runs.check_slices(method, points)


def test_weights_that_nothing_pulls_are_exactly_zero():
    method = Ftrl(0.5, l1=1.0)
    g = np.array([0.5, -0.5, 3.0, np.nan], np.float32)
    w, _ = method.update(np.zeros(4, np.float32), g, method.init(4), 0)
    np.testing.assert_array_equal(w[:2], 0)
    assert w[2] < 0
    assert np.isnan(w[3])


def test_a_rate_that_falls_to_zero_is_refused():
    falling, w = Ftrl(Polynomial(0.1, over=2)), np.ones(2, np.float32)
    with pytest.raises(SettingsError, match=r"a learning rate > 0 in iteration 2, found 0\.0"):
        falling.update(w, w, falling.init(2), 2)
