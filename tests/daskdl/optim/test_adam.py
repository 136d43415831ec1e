"""Adam against its formula and PyTorch; the rate's schedule; clipping."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl.errors import SettingsError
from daskdl.optim import Adam
from daskdl.optim.schedules import Step
from tests.daskdl.optim import runs

options = st.fixed_dictionaries(
    {
        "beta1": runs.betas,
        "beta2": runs.betas,
        "epsilon": runs.epsilons,
        "weight_decay": runs.decays,
        "amsgrad": st.booleans(),
    }
)


def theirs(options):
    """Return the settings under PyTorch's names."""
    names = {"epsilon": "eps", "weight_decay": "weight_decay", "amsgrad": "amsgrad"}
    named = {new: options[old] for old, new in names.items() if old in options}
    return named | {"betas": (options["beta1"], options["beta2"])}


@runs.few
@given(rate=runs.rates, options=options, dtype=runs.dtypes)
def test_agrees_with_pytorch(rate, options, dtype, torch):
    expected = runs.torch_descends(
        lambda p: torch.optim.Adam(p, lr=rate, **theirs(options)), torch, np.dtype(dtype)
    )
    runs.assert_close(runs.descend(Adam(rate, **options), dtype=np.dtype(dtype)), expected)


@runs.few
@given(options=options, points=runs.cuts)
def test_slices_have_the_bits_of_the_whole(options, points):
    runs.check_pure(Adam(0.01, **options))
    runs.check_slices(Adam(0.01, **options), points)


def test_changes_none_of_its_inputs():
    runs.check_pure(Adam(0.01, clip_norm=1.0, warmup=3))
    assert Adam(clip_norm=1.0).part([slice(0, 5)]) is None


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
    state = Adam().init(runs.SIZE)
    assert {name: (a.dtype, a.shape) for name, a in state.items()} == {
        "mean": (np.float32, (runs.SIZE,)),
        "square": (np.float32, (runs.SIZE,)),
    }


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"learning_rate": -1}, "Adam: expected 0 <= learning_rate < inf, found -1"),
        (
            {"learning_rate": Step(0.1, 3), "warmup": 3},
            "Adam: expected a number as learning_rate with warmup or decay_over, found Step",
        ),
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
