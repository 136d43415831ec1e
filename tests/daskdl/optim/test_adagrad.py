"""Adagrad, Adadelta, RMSprop and Ftrl beside PyTorch and papers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl.errors import SettingsError
from daskdl.optim import Adadelta, Adagrad, Ftrl, RMSprop
from daskdl.optim.schedules import Polynomial
from tests.daskdl.optim import runs

options = st.fixed_dictionaries(
    {
        "rate_decay": runs.decays,
        "weight_decay": runs.decays,
        "initial": st.sampled_from([0.0, 0.5, 2.0]),
        "epsilon": runs.epsilons,
    }
)
NAMES = {
    "rate_decay": "lr_decay",
    "weight_decay": "weight_decay",
    "initial": "initial_accumulator_value",
    "epsilon": "eps",
}


@runs.few
@given(rate=runs.rates, options=options, dtype=runs.dtypes)
def test_agrees_with_pytorch(rate, options, dtype, torch):
    theirs = {NAMES[name]: value for name, value in options.items()}
    expected = runs.torch_descends(
        lambda p: torch.optim.Adagrad(p, lr=rate, **theirs), torch, np.dtype(dtype)
    )
    runs.assert_close(runs.descend(Adagrad(rate, **options), dtype=np.dtype(dtype)), expected)


@runs.few
@given(options=options, points=runs.cuts)
def test_slices_have_the_bits_of_the_whole(options, points):
    runs.check_pure(Adagrad(0.1, **options))
    runs.check_slices(Adagrad(0.1, **options), points)


def test_two_steps_by_hand():
    method = Adagrad(learning_rate=0.5, epsilon=0)
    w, g = np.array([1.0], np.float32), np.array([3.0], np.float32)
    w, state = method.update(w, g, method.init(1), 0)
    assert (w[0], state["square"][0]) == (0.5, 9)
    w, state = method.update(w, 4 * g / 3, state, 1)
    assert w[0] == pytest.approx(0.5 - 0.5 * 4 / 5)


@pytest.mark.parametrize(
    "name", ["learning_rate", "rate_decay", "weight_decay", "initial", "epsilon"]
)
def test_impossible_settings_are_refused(name):
    with pytest.raises(SettingsError, match=f"Adagrad: expected 0 <= {name} < inf, found -1"):
        Adagrad(**{name: -1})


options_adadelta = st.fixed_dictionaries(
    {
        "smoothing": runs.betas,
        "epsilon": runs.epsilons,
        "weight_decay": runs.decays,
    }
)


def theirs(options):
    """Return the settings under PyTorch's names."""
    names = {"smoothing": "rho", "epsilon": "eps"}
    return {names.get(name, name): value for name, value in options.items()}


@runs.few
@given(rate=runs.rates, options=options_adadelta, dtype=runs.dtypes)
def test_agrees_with_pytorch_adadelta(rate, options, dtype, torch):
    expected = runs.torch_descends(
        lambda p: torch.optim.Adadelta(p, lr=rate, **theirs(options)), torch, np.dtype(dtype)
    )
    runs.assert_close(runs.descend(Adadelta(rate, **options), dtype=np.dtype(dtype)), expected)


@runs.few
@given(options=options_adadelta, points=runs.cuts)
def test_slices_have_the_bits_of_the_whole_adadelta(options, points):
    runs.check_pure(Adadelta(0.01, **options))
    runs.check_slices(Adadelta(0.01, **options), points)


def test_impossible_settings_are_refused_adadelta():
    with pytest.raises(SettingsError, match=r"Adadelta: expected 0 <= smoothing < 1, found -0\.1"):
        Adadelta(smoothing=-0.1)


options_rmsprop = st.fixed_dictionaries(
    {
        "smoothing": st.floats(0.5, 0.99),
        "epsilon": runs.epsilons,
        "weight_decay": runs.decays,
        "momentum": st.just(0.0) | runs.betas,
        "centered": st.booleans(),
    }
)


def theirs_rmsprop(options):
    """Return the settings under PyTorch's names."""
    names = {"smoothing": "alpha", "epsilon": "eps"}
    return {names.get(name, name): value for name, value in options.items()}


@runs.few
@given(rate=runs.rates, options=options_rmsprop, dtype=runs.dtypes)
def test_agrees_with_pytorch_rmsprop(rate, options, dtype, torch):
    expected = runs.torch_descends(
        lambda p: torch.optim.RMSprop(p, lr=rate, **theirs_rmsprop(options)), torch, np.dtype(dtype)
    )
    runs.assert_close(runs.descend(RMSprop(rate, **options), dtype=np.dtype(dtype)), expected)


@pytest.mark.slow
@runs.few
@given(options=options_rmsprop, points=runs.cuts)
def test_slices_have_the_bits_of_the_whole_rmsprop(options, points):
    runs.check_pure(RMSprop(0.01, **options))
    runs.check_slices(RMSprop(0.01, **options), points)


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


def test_impossible_settings_are_refused_rmsprop():
    with pytest.raises(SettingsError, match=r"RMSprop: expected 0 <= smoothing < 1, found 1\.0"):
        RMSprop(smoothing=1.0)


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


def test_impossible_settings_are_refused_ftrl():
    with pytest.raises(SettingsError, match="Ftrl: expected 0 <= l1 < inf, found -1"):
        Ftrl(l1=-1)
    with pytest.raises(SettingsError, match="Ftrl: expected learning_rate > 0, found 0"):
        Ftrl(0)
    falling, w = Ftrl(Polynomial(0.1, over=2)), np.ones(2, np.float32)
    with pytest.raises(SettingsError, match=r"a learning rate > 0 in iteration 2, found 0\.0"):
        falling.update(w, w, falling.init(2), 2)
