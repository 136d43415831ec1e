"""Adam against its formula and PyTorch."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl.errors import SettingsError
from daskdl.optim import Adam
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
    runs.check_pure(Adam(0.01))


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


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"learning_rate": -1}, "Adam: expected 0 <= learning_rate < inf, found -1"),
        ({"beta1": 1.0}, "Adam: expected 0 <= beta1 < 1, found 1.0"),
        ({"beta2": -0.1}, "Adam: expected 0 <= beta2 < 1, found -0.1"),
        ({"epsilon": -1e-8}, "Adam: expected 0 <= epsilon"),
        ({"weight_decay": -1}, "Adam: expected 0 <= weight_decay"),
    ],
)
def test_impossible_settings_are_refused(settings, sentence):
    with pytest.raises(SettingsError, match=sentence):
        Adam(**settings)
