"""RMSprop against PyTorch, and that slices can be stepped by themselves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl.errors import SettingsError
from daskdl.optim import RMSprop
from tests.daskdl.optim import runs

options = st.fixed_dictionaries(
    {
        "smoothing": st.floats(0.5, 0.99),
        "epsilon": runs.epsilons,
        "weight_decay": runs.decays,
        "momentum": st.just(0.0) | runs.betas,
        "centered": st.booleans(),
    }
)


def theirs(options):
    """Return the settings under PyTorch's names."""
    names = {"smoothing": "alpha", "epsilon": "eps"}
    return {names.get(name, name): value for name, value in options.items()}


@runs.few
@given(rate=runs.rates, options=options, dtype=runs.dtypes)
def test_agrees_with_pytorch(rate, options, dtype, torch):
    expected = runs.torch_descends(
        lambda p: torch.optim.RMSprop(p, lr=rate, **theirs(options)), torch, np.dtype(dtype)
    )
    runs.assert_close(runs.descend(RMSprop(rate, **options), dtype=np.dtype(dtype)), expected)


@runs.few
@given(options=options, points=runs.cuts)
def test_slices_have_the_bits_of_the_whole(options, points):
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


def test_impossible_settings_are_refused():
    with pytest.raises(SettingsError, match=r"RMSprop: expected 0 <= smoothing < 1, found 1\.0"):
        RMSprop(smoothing=1.0)
